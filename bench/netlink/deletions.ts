import { median } from '../row.ts';
import type { Bed } from './bed.ts';

/** How often the links are deleted on each side. */
const ROUNDS = 5;

/** Milliseconds until veth pairs are deleted, ours and by `ip -batch`. */
type Deletions = { readonly ours: number; readonly peer: number };

/** Deletes `count` veth pairs at once as the agent does, and by one `ip -batch`; medians of rounds in turn. */
export async function deleteLinks(bed: Bed, count: number): Promise<Deletions> {
  const names = Array.from({ length: count }, (_, at) => `gone${at}`);
  const file = bed.batchFile(
    'link-del',
    names.map((name) => `link del ${name}`),
  );
  const { link } = bed.rtnl;
  const make = () =>
    names.map((ifname) => link.add({ kind: 'veth', ifname, up: true, peer: { ifname: `p${ifname}` } }));
  const times = { ours: [] as number[], peer: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const indexes = make();
    const startMs = performance.now();
    await Promise.all(indexes.map((ifindex) => link.deleteInBackground(ifindex)));
    times.ours.push(performance.now() - startMs);
    make();
    const peerStartMs = performance.now();
    bed.ip('-batch', file);
    times.peer.push(performance.now() - peerStartMs);
  }
  return { ours: median(times.ours), peer: median(times.peer) };
}
