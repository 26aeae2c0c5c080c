import { statSync } from 'node:fs';
import type { ExplainPlace } from './ops-messages.ts';

/** The network namespace of this process. */
const OWN_NETNS = '/proc/self/ns/net';

/**
 * Identifies what a process would read to explain: its network namespace, the journal and the root of the host's files. Of
 * two processes on one machine it is equal where both read the same, whatever their mount namespaces call it. Returns
 * undefined where one of them cannot be read.
 */
export function identifyExplainPlace(paths: {
  readonly journal: string;
  readonly hostRoot: string;
}): ExplainPlace | undefined {
  try {
    const [netns, journal, hostRoot] = [identityOf(OWN_NETNS), identityOf(paths.journal), identityOf(paths.hostRoot)];
    return { netns, journal, hostRoot };
  } catch {
    // It is not there, or not for this user.
    return undefined;
  }
}

/** @throws the error of stat(2) */
function identityOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}
