//! Priority queue with one event per client.

/// Next event of each client, as a tournament tree whose winner is the earliest event. Replacing an
/// event costs one comparison per level, without branches.
pub struct ClientQueue {
    /// Winner of each game: 1 is the final, games 2n and 2n + 1 lead to game n, and the second half
    /// are the clients. Each entry holds a time above a client's number, so the minimum is the
    /// first event.
    games: Vec<u128>,
}

/// Time of clients without an event.
const NEVER: u64 = u64::MAX;

impl ClientQueue {
    /// Creates a queue with the first event of each client, in the order of clients.
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

    /// Returns the time of the earliest event and its client. Among equal times, the first client
    /// wins.
    pub fn first(&self) -> Option<(u64, usize)> {
        let time = (self.games[1] >> 64) as u64;
        (time != NEVER).then_some((time, self.games[1] as u64 as usize))
    }

    /// Replaces the earliest event by a later one of the same client.
    pub fn replace_first(&mut self, time: u64) {
        self.set_first(time.min(NEVER - 1));
    }

    /// Removes the earliest event.
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
            let mut queue = ClientQueue::new((0..clients).map(|client| u64::from(client * 7 % 5)));
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
        assert_eq!(ClientQueue::new([].into_iter()).first(), None);
    }
}
