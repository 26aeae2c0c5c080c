import { flowFilterOf } from '../../../dataplane/fast-path/flow-filter.ts';
import { FlowMapError, readFlows } from '../../../dataplane/fast-path/flow-maps.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { isNftError } from '../../../dataplane/nft-error.ts';
import { FLOWTABLE_TABLE } from '../../../dataplane/numbers.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { netnsPathOf } from '../../../inspection/node/with-node-netns.ts';
import { sysctlName, tcpBeLiberal } from '../../../sysctl/sysctl-key.ts';
import type { GlobalArgs } from '../../command/command.ts';
import { type BundlePart, valuePart } from './bundle-part.ts';

/** Flows that are listed of at most 131,072; their number is always there. */
const MAX_FLOWS = 1_000;

/** Returns the part about the fast path: its filters on links, the flows that are followed, its flowtable, and its setting. */
export function fastPathPart(global: GlobalArgs): BundlePart {
  return {
    path: 'kernel/fast-path.json',
    collect: async () => {
      const { host } = await readNodeFacts({ global }, { insides: 'none', nft: false });
      const { filters } = host.traffic;
      const setting = sysctlName(tcpBeLiberal());
      if (filters.kind === 'unknown') return { kind: 'missing', why: filters.why };
      const ours = filters.value.flatMap((filter) => flowFilterOf(filter) ?? []);
      const names = new Map(host.links.map(({ ifindex, ifname }) => [ifindex, ifname]));
      return valuePart({
        settings: { [setting]: host.sysctls.get(setting) ?? null },
        filters: ours.map((filter) => ({ ifname: names.get(filter.ifindex) ?? null, ...filter })),
        ...followed(ours[0]?.programId),
        ...(await flowtable(global)),
      });
    },
  };
}

/** The flows of one program are those of all: they share their maps. */
function followed(programId: number | undefined): Readonly<Record<string, unknown>> {
  if (programId === undefined) return { flowCount: 0, flows: [] };
  try {
    const flows = readFlows(programId);
    // JSON has no number for nanoseconds since the start.
    const shown = flows.slice(0, MAX_FLOWS).map((flow) => ({ ...flow, expiryNs: String(flow.expiryNs) }));
    return { flowCount: flows.length, flows: shown };
  } catch (error) {
    if (!(error instanceof FlowMapError)) throw error;
    return { flowsNotRead: error.message };
  }
}

/** The table of the flowtable as nft lists it, by lines; null where there is none. */
async function flowtable(global: GlobalArgs): Promise<Readonly<Record<string, unknown>>> {
  const nft = openNft(global.netns === undefined ? {} : { netnsPath: netnsPathOf(global) });
  try {
    const listing = await nft.read(FLOWTABLE_TABLE);
    return { flowtable: listing?.trimEnd().split('\n') ?? null };
  } catch (error) {
    if (!isNftError(error)) throw error;
    return { flowtableNotRead: error.message };
  }
}
