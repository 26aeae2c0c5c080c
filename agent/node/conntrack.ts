import { execFile } from 'node:child_process';
import type { Logger } from '../../runtime/log.ts';
import type { Conntrack } from '../ports.ts';

const TIMEOUT_MS = 5_000;
/** Each is one sweep of the table: as the original's source or destination, and as the reply's. @see conntrack(8) */
const SIDES = ['--orig-src', '--orig-dst', '--reply-src', '--reply-dst'] as const;

/**
 * Flushes by the `conntrack` tool. Where it is missing the flush is skipped, with a warning: an address that is reused
 * early may then meet packets of its last owner's connections, which is what happens without any flush.
 */
export function openConntrack(log: Logger): Conntrack {
  return {
    flush: async (ips) => {
      for (const ip of ips) {
        await Promise.all(SIDES.map((side) => remove(side, ip, log)));
      }
    },
  };
}

async function remove(side: string, ip: string, log: Logger): Promise<void> {
  const over = Promise.withResolvers<void>();
  const args = ['-D', '-f', ip.includes(':') ? 'ipv6' : 'ipv4', side, ip];
  execFile('conntrack', args, { timeout: TIMEOUT_MS }, (error, _stdout, stderr) => {
    // "0 flow entries have been deleted" is exit code 1 as well, and all we want.
    const isEmpty = error?.code === 1 && stderr.includes(' 0 flow entries');
    if (error !== null && !isEmpty) log.warn('conntrack entries not flushed', { ip, error, stderr });
    over.resolve();
  });
  await over.promise;
}
