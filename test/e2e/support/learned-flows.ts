import type { Flow } from '../../../dataplane/fast-path/flow-layout.ts';
import { type FlowPrograms, openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { programFilters } from './fast-filters.ts';

/** One direction of a flow of UDP or TCP, by its destination. */
type Direction = Pick<Flow, 'src' | 'dst'> & { readonly dport: number };

/** Opens the programs that an agent attached in a namespace, for a look at their flows. The caller closes them. */
export async function openAttachedPrograms(netns: NetnsView): Promise<FlowPrograms> {
  const filters = await waitUntil(
    async () => {
      const found = await programFilters(netns);
      return found.length > 0 && found;
    },
    { what: 'filters of the fast path', everyMs: 100 },
  );
  const idOf = (name: string): number => filters.find((filter) => filter.name === name)?.programId ?? 0;
  const programs = openFlowPrograms({ fastId: idOf('tke_fast'), learnId: idOf('tke_learn') });
  if (programs.isReused) return programs;
  programs.close();
  throw new Error(`the programs on the links are others than ours: ${JSON.stringify(filters)}`);
}

/** Waits until the fast path follows a flow: one of UDP is assured after 2 s. */
export async function awaitLearned(programs: FlowPrograms, { src, dst, dport }: Direction, what = ''): Promise<Flow> {
  const isWanted = (flow: Flow): boolean => flow.src === src && flow.dst === dst && flow.dport === dport;
  return await waitUntil(() => programs.flows().find(isWanted), {
    what: `the flow ${what} (${src} to ${dst}, port ${dport}) to be learned`,
    everyMs: 100,
    explain: () => JSON.stringify(programs.flows(), (_key, value) => (typeof value === 'bigint' ? `${value}` : value)),
  });
}
