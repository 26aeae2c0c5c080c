import { listKnown } from '../cri/list-known.ts';
import type { CriSandbox, SandboxView } from '../cri/sandbox-view.ts';
import { isUnknownOwner, leaseKey } from '../journal/lease.ts';
import type { Supply } from '../journal/supply.ts';
import type { KernelEvidence, PeerEvidence, PodEnd } from '../node/kernel-evidence.ts';
import type { AgentParts } from '../state/ports.ts';
import { nameVeths } from './name-veths.ts';
import { planAdoption } from './plan-adoption.ts';

/** Dependencies of adoption. */
type AdoptDeps = Pick<AgentParts, 'clock' | 'log' | 'state' | 'journal'> & {
  /** Undefined when no runtime is configured. */
  readonly view: SandboxView | undefined;
  /** Reads the veths in these network namespaces and in all that have a name. */
  readonly readEnds: (named: Iterable<string>) => readonly PodEnd[];
  /** Finds the Pod ends of these host veths inside the sandboxes. */
  readonly readPeers: (
    veths: KernelEvidence['veths'],
    netnsByContainer: ReadonlyMap<string, string>,
  ) => ReadonlyMap<string, PeerEvidence>;
};

/**
 * How long adoption waits for the container runtime of the node's Pods, which may be starting at the same time. After that it
 * goes on without it.
 */
const RUNTIME_WAIT_MS = 30_000;

/**
 * Takes over running Pods that the journal does not know: writes their leases into the journal and into `state`. Run it
 * before serving, when the journal is new or was damaged. Does nothing where the kernel holds nothing of ours. Returns
 * the number of adopted leases.
 */
export async function adopt(deps: AdoptDeps, found: KernelEvidence, signal: AbortSignal): Promise<number> {
  const { state, journal, log } = deps;
  if (!hasTraces(found)) return 0;
  const hasPods = found.veths.length > 0 || (found.unnamed ?? []).length > 0 || hasForeignLinks(found);
  const { sandboxes, ips: sandboxIps, netns } = hasPods ? await queryRuntime(deps, found, signal) : NO_RUNTIME;
  const ends = hasPods ? deps.readEnds(netns.values()) : [];
  const named = nameVeths({ kernel: found, ends, sandboxes, netns, sandboxIps });
  const kernel = { ...found, veths: named.veths };
  const peers = new Map([...deps.readPeers(kernel.veths, netns), ...named.peers]);
  const areOfOthers = state.role === 'uplinks';
  const sources = { kernel, supply: state.supply, peers, podCidrs: state.podCidrs, areOfOthers };
  const adoption = planAdoption({ ...sources, sandboxes, sandboxIps });
  const adopted = new Set(adoption.leases.map(({ hostVeth }) => hostVeth?.name));
  for (const one of named.held.filter(({ link }) => adopted.has(link)))
    log.warn('a link of a Pod without a known owner: its addresses are given to nobody', one);
  if (adoption.ruleMode !== undefined) journal.putRuleMode(adoption.ruleMode);
  for (const record of adoption.enis) journal.putEni(record);
  for (const lease of adoption.leases) {
    journal.putLease(lease);
    const ips = lease.addresses.map(({ ip }) => ip);
    log.warn('adopted an attachment', { key: leaseKey(lease), ips, pod: `${lease.podNamespace}/${lease.podName}` });
  }
  if (adoption.unknownEnis.length > 0) {
    state.supply = withEnis(state.supply, adoption.unknownEnis);
    journal.putSupply(state.supply);
  }
  const content = journal.load();
  state.restore(state.supply === undefined ? content : { ...content, supply: state.supply });
  return adoption.leases.length;
}

type Runtime = {
  readonly sandboxes: readonly CriSandbox[];
  readonly ips: ReadonlyMap<string, readonly string[]>;
  readonly netns: ReadonlyMap<string, string>;
};

const NO_RUNTIME: Runtime = { sandboxes: [], ips: new Map(), netns: new Map() };

async function queryRuntime(deps: AdoptDeps, found: KernelEvidence, signal: AbortSignal): Promise<Runtime> {
  const { view, clock, log } = deps;
  if (view === undefined) return NO_RUNTIME;
  const ids = new Set(found.veths.map(({ containerId }) => containerId).filter((id) => !isUnknownOwner(id)));
  try {
    const wanted = { clock, ids, untilMs: clock.monotonicMs() + RUNTIME_WAIT_MS };
    const sandboxes = await listKnown(view, wanted, signal);
    const networks = await Promise.all(
      sandboxes.map(async ({ id }) => ({ id, network: await view.network(id, signal) })),
    );
    return {
      sandboxes,
      ips: new Map(networks.map(({ id, network }) => [id, network?.ips ?? []])),
      netns: new Map(networks.flatMap(({ id, network }) => (network?.netns ? [[id, network.netns] as const] : []))),
    };
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn('adopting without the container runtime: Pod names and netns stay unknown', { error });
    return NO_RUNTIME;
  }
}

/** Tells whether the kernel holds anything that an earlier agent left. */
export function hasTraces({ enis, veths, unnamed = [] }: KernelEvidence): boolean {
  return enis.length > 0 || veths.length > 0 || unnamed.some(({ isMarked }) => isMarked);
}

/** Tells whether main plugins of others may have made links for addresses of ours: those name no sandbox. */
function hasForeignLinks({ ipams, ruledByOthers = [] }: KernelEvidence): boolean {
  return ipams.length > 0 || ruledByOthers.length > 0;
}

function withEnis(supply: Supply | undefined, enis: Supply['enis']): Supply {
  const base = supply ?? { nodeName: '', epoch: 0, enis: [], warm: { min: 0, max: 0 } };
  return { ...base, enis: [...base.enis, ...enis] };
}
