//! Events in the order of time, for clients that each wait for one.

/// The next event of each client: a tournament whose winner is the earliest. A client's turn
/// replaces its event, which costs one comparison per round of the tournament and moves nothing.
pub struct Queue {
    /// When each client's event is; [`NEVER`] if it has none. Padded to a power of two.
    times: Vec<u64>,
    /// The client that wins each game; game 1 is the final, games 2n and 2n + 1 lead to game n.
    winners: Vec<u32>,
}

const NEVER: u64 = u64::MAX;

impl Queue {
    /// The first event of each client, in the order of clients. At most 2³² clients.
    pub fn new(times: impl Iterator<Item = u64>) -> Self {
        let mut times: Vec<_> = times.map(|time| time.min(NEVER - 1)).collect();
        let leaves = times.len().next_power_of_two().max(2);
        times.resize(leaves, NEVER);
        let mut queue = Self { times, winners: vec![0; leaves] };
        for game in (1..leaves).rev() {
            queue.winners[game] = queue.play(game);
        }
        queue
    }

    /// The time of the earliest event, and whose it is. Of those of one moment the one of the first
    /// client.
    pub fn first(&self) -> Option<(u64, usize)> {
        let client = self.winners[1] as usize;
        let time = self.times[client];
        (time != NEVER).then_some((time, client))
    }

    /// The client that had the earliest event gets another one.
    pub fn replace_first(&mut self, time: u64) {
        self.set_first(time.min(NEVER - 1));
    }

    /// The client that had the earliest event gets no other.
    pub fn remove_first(&mut self) {
        self.set_first(NEVER);
    }

    fn set_first(&mut self, time: u64) {
        let client = self.winners[1] as usize;
        self.times[client] = time;
        let mut game = usize::midpoint(client, self.winners.len());
        while game > 0 {
            self.winners[game] = self.play(game);
            game /= 2;
        }
    }

    fn play(&self, game: usize) -> u32 {
        let leaves = self.winners.len();
        let (left, right) = if game * 2 >= leaves {
            ((game * 2 - leaves) as u32, (game * 2 + 1 - leaves) as u32)
        } else {
            (self.winners[game * 2], self.winners[game * 2 + 1])
        };
        if self.times[left as usize] <= self.times[right as usize] { left } else { right }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time() {
        for clients in 1..20_u64 {
            let mut queue = Queue::new((0..clients).map(|client| client * 7 % 5));
            let mut last = 0;
            let mut count = 0;
            while let Some((time, client)) = queue.first() {
                assert!(time >= last);
                last = time;
                count += 1;
                if time < 100 {
                    queue.replace_first(time + 1 + client as u64 * 13 % 7);
                } else {
                    queue.remove_first();
                }
            }
            assert!(count > clients && last >= 100);
        }
        assert_eq!(Queue::new(std::iter::empty()).first(), None);
    }
}
