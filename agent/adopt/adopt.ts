import type { Kernel } from '../../dataplane/kernel.ts';
import { DEFAULT_LINK_GROUP } from '../../dataplane/link-group.ts';
import type { AgentConfig } from '../config/options.ts';
import { askRuntime } from '../cri/ask-runtime.ts';
import type { SandboxView } from '../cri/sandbox-view.ts';
import { isUnknownOwner, leaseKey } from '../journal/lease.ts';
import type { Supply } from '../journal/supply.ts';
import type { KernelEvidence } from '../node/kernel-evidence.ts';
import type { Namespaces } from '../node/namespaces.ts';
import { readHostDump } from '../node/node-probe.ts';
import { readEvidence } from '../node/read-evidence.ts';
import { readPodEnds } from '../node/read-pod-interfaces.ts';
import { readSandboxPeers } from '../node/read-sandbox-peers.ts';
import type { AgentParts } from '../state/ports.ts';
import { isForNode, withheld } from '../supply/accept-supply.ts';
import type { SupplySource } from '../supply/supply-source.ts';
import { nameVeths } from './name-veths.ts';
import { planAdoption } from './plan-adoption.ts';
import type { TakeOver } from './take-over.ts';

const SUPPLY_POLL_MS = 200;
/**
 * How long adoption, and then taking over, waits for the container runtime of the node's Pods, which may be starting at the same
 * time. After that it goes on without it.
 */
const RUNTIME_WAIT_MS = 30_000;

/** Dependencies of adoption. */
type AdoptDeps = Pick<AgentParts, 'clock' | 'log' | 'state' | 'journal'> & {
  readonly config: Pick<AgentConfig, 'eniMarkMask' | 'nodeName' | 'role' | 'supplySource'>;
  readonly kernel: Pick<Kernel, 'rtnetlink'>;
  readonly host: { readonly namespaces: Namespaces };
  /** Undefined when no runtime is configured. */
  readonly view: SandboxView | undefined;
  readonly takeOver: TakeOver;
};

/** The sources that adoption at the start reads. */
type AdoptionSources = {
  readonly supply: SupplySource;
  readonly signal: AbortSignal;
};

/**
 * Adopts the Pods that the journal does not know, when `journal.needsAdoption` is set: the journal is new in this boot, or its
 * agent was killed before an earlier adoption was finished. Where the kernel holds nothing of ours it only marks the journal
 * as adopted. Waits for the first supply without a limit. Then takes over Pods that another program put on the bridge.
 */
export async function adoptAtStart(deps: AdoptDeps, sources: AdoptionSources): Promise<void> {
  if (deps.journal.needsAdoption) await adoptUnknown(deps, sources);
  // At each start: another program may have put Pods on the bridge while no agent ran, or while it was not ours.
  await deps.takeOver.run(sources.signal, RUNTIME_WAIT_MS);
}

async function adoptUnknown(deps: AdoptDeps, sources: AdoptionSources): Promise<void> {
  const { config, journal, kernel } = deps;
  const found = readEvidence(readHostDump(kernel.rtnetlink), config.eniMarkMask);
  // With the role uplinks the rules of an address are no evidence of a Pod of ours: each address has them.
  const evidence = config.role === 'uplinks' ? { ...found, ipams: [] } : found;
  if (hasTraces(evidence)) await adoptAll(deps, sources, evidence);
  journal.markAdopted();
}

async function adoptAll(deps: AdoptDeps, sources: AdoptionSources, evidence: KernelEvidence): Promise<void> {
  const { journal, log } = deps;
  log.warn('no journal of this boot, but Pods may live: adopting', {
    origin: journal.origin,
    movedTo: journal.movedTo,
  });
  // Only the supply says which ENI an address is on, so wait for it. Meanwhile executables spool DELs, and runtimes
  // retry ADDs.
  if (needsSupply(evidence)) deps.state.supply = await waitForSupply(deps, sources);
  const adopted = await adopt(deps, evidence, sources.signal);
  log.info('adoption done', { leases: adopted });
}

/** GlobalRoute Pods need none, and a node that has no others may get none. */
function needsSupply({ veths, unnamed = [], enis, ipams }: KernelEvidence): boolean {
  const marked = [...veths, ...unnamed.filter(({ isMarked }) => isMarked)];
  return enis.length > 0 || ipams.length > 0 || marked.some(({ table }) => table !== DEFAULT_LINK_GROUP);
}

async function waitForSupply({ config, clock }: AdoptDeps, { supply, signal }: AdoptionSources): Promise<Supply> {
  for (;;) {
    const found = supply.latest();
    if (found !== undefined && isForNode(found, config.nodeName)) {
      // In the cluster the lost journal held offers too. No address may be given before this agent's own first write
      // has removed them from the object.
      return config.supplySource === 'cluster' ? withheld(found) : found;
    }
    await clock.sleep(SUPPLY_POLL_MS, signal);
  }
}

/**
 * Takes over running Pods that the journal does not know: writes their leases into the journal and into `state`. Returns
 * the number of adopted leases.
 */
async function adopt(deps: AdoptDeps, found: KernelEvidence, signal: AbortSignal): Promise<number> {
  const { state, journal, log } = deps;
  const { namespaces } = deps.host;
  const hasPods = found.veths.length > 0 || (found.unnamed ?? []).length > 0 || hasForeignLinks(found);
  const ids = new Set(found.veths.map(({ containerId }) => containerId).filter((id) => !isUnknownOwner(id)));
  const unanswered = 'adopting without the container runtime: Pod names and netns stay unknown';
  const { sandboxes = [], networks } = await askRuntime(
    { ...deps, view: hasPods ? deps.view : undefined },
    { ids, patienceMs: RUNTIME_WAIT_MS, unanswered },
    signal,
  );
  const sandboxIps = new Map([...networks].map(([id, network]) => [id, network?.ips ?? []]));
  const netns = new Map(
    [...networks].flatMap(([id, network]) => (network?.netns ? [[id, network.netns] as const] : [])),
  );
  const ends = hasPods ? readPodEnds(namespaces, netns.values()) : [];
  const named = nameVeths({ kernel: found, ends, sandboxes, netns, sandboxIps });
  const kernel = { ...found, veths: named.veths };
  const peers = new Map([...readSandboxPeers(namespaces, kernel.veths, netns), ...named.peers]);
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

/** Reports whether the kernel holds anything that an earlier agent left. */
function hasTraces({ enis, veths, unnamed = [] }: KernelEvidence): boolean {
  return enis.length > 0 || veths.length > 0 || unnamed.some(({ isMarked }) => isMarked);
}

/** Reports whether main plugins of others may have made links for addresses of ours: those name no sandbox. */
function hasForeignLinks({ ipams, ruledByOthers = [] }: KernelEvidence): boolean {
  return ipams.length > 0 || ruledByOthers.length > 0;
}

function withEnis(supply: Supply | undefined, enis: Supply['enis']): Supply {
  const base = supply ?? { nodeName: '', epoch: 0, enis: [], warm: { min: 0, max: 0 } };
  return { ...base, enis: [...base.enis, ...enis] };
}
