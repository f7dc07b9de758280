//! Events in the order of time, for clients that each wait for one.

/// The next event of each client: a tournament whose winner is the earliest. A client's turn
/// replaces its event, which costs a comparison per round of the tournament, without branches.
pub struct Queue {
    /// The winner of each game: 1 is the final, 2n and 2n + 1 lead to n, and the second half are
    /// the clients themselves. A time above a client's number, so that the least is the first.
    games: Vec<u128>,
}

/// The time of clients without an event.
const NEVER: u64 = u64::MAX;

impl Queue {
    /// The first event of each client, in the order of clients.
    pub fn new(times: impl ExactSizeIterator<Item = u64>) -> Self {
        let leaves = times.len().next_power_of_two().max(2);
        let mut games = vec![key(NEVER, 0); 2 * leaves];
        for (client, time) in times.enumerate() {
            games[leaves + client] = key(time.min(NEVER - 1), client);
        }
        for game in (1..leaves).rev() {
            games[game] = games[2 * game].min(games[2 * game + 1]);
        }
        Self { games }
    }

    /// The time of the earliest event, and whose it is. Of those of one moment the one of the first
    /// client.
    pub fn first(&self) -> Option<(u64, usize)> {
        let time = (self.games[1] >> 64) as u64;
        (time != NEVER).then_some((time, self.games[1] as u64 as usize))
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
        let client = self.games[1] as u64 as usize;
        let mut winner = key(time, client);
        let mut game = self.games.len() / 2 + client;
        while game > 0 {
            self.games[game] = winner;
            winner = winner.min(self.games[game ^ 1]);
            game /= 2;
        }
    }
}

fn key(time: u64, client: usize) -> u128 {
    u128::from(time) << 64 | client as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_of_time() {
        for clients in 1..20_u32 {
            let mut queue = Queue::new((0..clients).map(|client| u64::from(client * 7 % 5)));
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
        assert_eq!(Queue::new([].into_iter()).first(), None);
    }
}
