import { DEFAULT_LINK_GROUP } from '../dataplane/link-group.ts';
import { openRtnetlinkIn } from '../netlink/rtnetlink.ts';
import { adopt, hasTraces } from './adopt/adopt.ts';
import type { AgentComponents } from './components.ts';
import type { Supply } from './journal/supply.ts';
import type { KernelEvidence } from './node/kernel-evidence.ts';
import { readHostDump } from './node/node-probe.ts';
import { readEvidence } from './node/read-evidence.ts';
import { readPodEnds } from './node/read-pod-interfaces.ts';
import { readSandboxPeers } from './node/read-sandbox-peers.ts';
import { isForNode, withheld } from './supply/accept-supply.ts';
import type { SupplySource } from './supply/supply-source.ts';

const SUPPLY_POLL_MS = 200;
/** How long taking over waits for the container runtime, which may be starting at the same time. */
const RUNTIME_WAIT_MS = 30_000;

/** The sources that adoption at the start reads. */
type AdoptionSources = {
  readonly supply: SupplySource;
  readonly signal: AbortSignal;
};

/**
 * Takes over Pods that another program put on the bridge. Adopts the Pods that the journal does not know, when `journal.needsAdoption` is set: the journal is new in this boot,
 * or its agent was killed before an earlier adoption was finished. Where the kernel holds nothing of ours it only marks
 * the journal as adopted. Waits for the first supply without a limit.
 */
export async function adoptAtStart(components: AgentComponents, sources: AdoptionSources): Promise<void> {
  if (components.journal.needsAdoption) await adoptUnknown(components, sources);
  // At each start: another program may have put Pods on the bridge while no agent ran, or while it was not ours.
  await components.takeOver.run(sources.signal, RUNTIME_WAIT_MS);
}

async function adoptUnknown(components: AgentComponents, sources: AdoptionSources): Promise<void> {
  const { config, journal, kernel } = components;
  const found = readEvidence(readHostDump(kernel.rtnetlink), config.eniMarkMask);
  // With the role uplinks the rules of an address are no evidence of a Pod of ours: each address has them.
  const evidence = config.role === 'uplinks' ? { ...found, ipams: [] } : found;
  if (hasTraces(evidence)) await adoptAll(components, sources, evidence);
  journal.markAdopted();
}

async function adoptAll(
  components: AgentComponents,
  sources: AdoptionSources,
  evidence: KernelEvidence,
): Promise<void> {
  const { config, journal, log } = components;
  log.warn('no journal of this boot, but Pods may live: adopting', {
    origin: journal.origin,
    movedTo: journal.movedTo,
  });
  // Only the supply says which ENI an address is on, so wait for it. Meanwhile executables spool DELs, and runtimes
  // retry ADDs.
  if (needsSupply(evidence)) components.state.supply = await waitForSupply(components, sources);
  const adopted = await adopt(
    {
      ...components,
      readEnds: (named) => readPodEnds(config.hostRoot, named),
      readPeers: (veths, named) =>
        readSandboxPeers(
          { hostRoot: config.hostRoot, openRtnetlinkIn: (netns) => openRtnetlinkIn(netns) },
          veths,
          named,
        ),
    },
    evidence,
    sources.signal,
  );
  log.info('adoption done', { leases: adopted });
}

/** GlobalRoute Pods need none, and a node that has no others may get none. */
function needsSupply({ veths, unnamed = [], enis, ipams }: KernelEvidence): boolean {
  const marked = [...veths, ...unnamed.filter(({ isMarked }) => isMarked)];
  return enis.length > 0 || ipams.length > 0 || marked.some(({ table }) => table !== DEFAULT_LINK_GROUP);
}

async function waitForSupply({ config, clock }: AgentComponents, { supply, signal }: AdoptionSources): Promise<Supply> {
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
