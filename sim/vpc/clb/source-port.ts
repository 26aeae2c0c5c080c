/** The kernel's own range, minus what listens below it. */
const [FIRST_PORT, LAST_PORT] = [32_768, 60_999];

let next = FIRST_PORT;

/**
 * Returns the source port of the next connection of this process: each in turn. The kernel takes one of those that are free by
 * chance, also one that was used a moment ago, for a socket with an address; the router takes two such connections for one flow.
 */
export function nextSourcePort(): number {
  const port = next;
  next = next < LAST_PORT ? next + 1 : FIRST_PORT;
  return port;
}
