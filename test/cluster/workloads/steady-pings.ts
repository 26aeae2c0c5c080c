import type { NetnsView } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { SeenPod } from '../pods.ts';

/** What became of the pings of one Pod. */
type Pinged = { readonly pod: string; readonly sent: number; readonly answered: number };

/** Pings each Pod from a host, twenty times a second, until the returned function is called. */
export function startPings(host: NetnsView, pods: readonly SeenPod[]): () => Promise<readonly Pinged[]> {
  const pings = pods.map(({ name, ip }) => ({ name, child: host.start(['ping', '-n', '-i', '0.05', ip]) }));
  return () =>
    Promise.all(
      pings.map(async ({ name, child }) => {
        child.kill('SIGINT');
        // What it prints at its end may come after the news of its end.
        await waitUntil(() => child.stdout.includes(' received'), { what: `the count of pings to ${name}` });
        await child.stop();
        const [, sent, answered] = /(\d+) packets transmitted, (\d+) received/.exec(child.stdout) ?? [];
        return { pod: name, sent: Number(sent), answered: Number(answered) };
      }),
    );
}
