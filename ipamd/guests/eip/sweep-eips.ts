import { batchesOf, IDS_PER_CALL } from '../../../cloud/batches.ts';
import type { CallContext, Eip } from '../../../cloud/cloud.ts';
import type { OrphanKind } from '../../../cloud/orphan-sweep.ts';
import { claimRefIn, claimTag } from '../../../crd/claim-tag.ts';
import { EIP_TAG } from '../../../crd/cloud-tags.ts';
import type { Informer } from '../../../kube/informer.ts';
import { EIP_CLAIMS } from '../../../kube/resource-types.ts';
import { recordOrphan, reportOrphan, type SweepDeps } from '../../audit/run-sweep.ts';
import { bindingText } from './decide-listed-eip.ts';
import type { EipClaimCache, EipClaimEntry } from './eip-claim-cache.ts';
import type { EipDeps } from './eip-deps.ts';
import { isMadeHere } from './eip-identity.ts';
import { RELEASING_STATES, TRANSITIONAL_STATES } from './eip-view.ts';

/** Dependencies of the sweep of EIPs. */
type EipSweepDeps = SweepDeps & {
  readonly cloud: EipDeps['cloud'];
  readonly claims: Pick<Informer<EipClaimEntry>, 'isSynced'>;
  readonly claimCache: EipClaimCache;
  /** Requests that a claim is compared with the cloud. */
  readonly requestComparison: (key: string) => void;
};

/** Compares all EIPs of the cluster with the claims: claims that differ are compared again, orphaned EIPs are released. */
export function sweptEips(deps: EipSweepDeps): OrphanKind<Eip> {
  const { cloud, kube, log, claims, claimCache, definitions, config } = deps;
  const nameOf = ({ publicIp, eipId, tags }: Eip): string =>
    `EIP ${publicIp} (${eipId}), allocated for ${tags[EIP_TAG.claim] ?? ''},`;
  return {
    skipMessage: 'EIPs could not be described',
    idOf: ({ eipId }) => eipId,
    list: async (context) => {
      if (!claims.isSynced) return 'NotSynced';
      const eips = await describeEips(deps, context);
      if (!claims.isSynced) return 'NotSynced';
      const differing = findDifferingClaims(claimCache.values(), eips);
      if (differing.length > 0) log.warn('EIPClaims and cloud differ', { claims: differing.slice(0, 20) });
      for (const key of differing) deps.requestComparison(key);
      return [...eips.values()];
    },
    isOurs: (eip) => isMadeHere(eip, config.clusterId),
    ownerCheck: () => (claims.isSynced ? ownersOf(claimCache.values()) : undefined),
    limit: () => (definitions.wereLostLately ? 0 : config.orphanLimit),
    // A bound one is in use.
    whyKept: (eip) => (eip.status === 'UNBIND' ? undefined : `is ${bindingText(eip)}; unbind it by hand`),
    lookAgain: async ({ eipId, tags }, context) => {
      const [now] = await cloud.eips.describe({ eipIds: [eipId] }, context);
      // A broken list lacks claims that exist.
      const ref = claimRefIn(tags[EIP_TAG.claim]);
      const claim = ref && (await kube.get(EIP_CLAIMS, ref, context.signal));
      return claim === undefined ? now : undefined;
    },
    remove: async ({ eipId, publicIp }, context) => {
      if (config.orphanDryRun) return { kind: 'later', why: 'dry run' };
      await cloud.tasks.settle(await cloud.eips.release(eipId, context), context);
      log.info('orphaned EIP released', { eipId, publicIp });
      return { kind: 'removed' };
    },
    report: (eip, outcome) => reportOrphan(deps, WORDS, nameOf(eip), outcome),
    reportTooMany: ({ length }, ownCount) => {
      const text = `${length} of the ${ownCount} EIPs that ipamd allocated for this cluster seem to belong to no claim; none is released. Were EIPClaims lost, or is --clusterid that of another cluster?`;
      recordOrphan(deps, 'Warning', 'OrphanEIP', text);
    },
  };
}

const WORDS = {
  reasons: ['OrphanEIP', 'OrphanEIPReleased'],
  lacks: ['belongs to no claim', 'belonged to no claim'],
  removed: 'released',
} as const;

/** Describes the EIPs with the cluster's tag, and those that claims name. */
async function describeEips(
  { cloud, claimCache, config }: EipSweepDeps,
  context: CallContext,
): Promise<ReadonlyMap<string, Eip>> {
  const tag = { key: EIP_TAG.cluster, value: config.clusterId };
  const eips = new Map((await cloud.eips.describe({ tag }, context)).map((eip) => [eip.eipId, eip]));
  const rest = [...new Set(claimCache.values().flatMap(({ eipIds }) => eipIds))].filter((eipId) => !eips.has(eipId));
  for (const eipIds of batchesOf(rest, IDS_PER_CALL))
    for (const eip of await cloud.eips.describe({ eipIds }, context)) eips.set(eip.eipId, eip);
  return eips;
}

/** Returns the claims whose EIP differs from their status. */
function findDifferingClaims(claims: readonly EipClaimEntry[], eips: ReadonlyMap<string, Eip>): readonly string[] {
  return claims.filter((entry) => differs(entry, eips)).map(({ key }) => key);
}

/**
 * Returns what tells whether an EIP may be of a claim: a claim names it, or the claim in its tag may still get it. One that is
 * changing may be of any.
 */
function ownersOf(claims: readonly EipClaimEntry[]): (eip: Eip) => boolean {
  const named = new Set(claims.flatMap((entry) => entry.eipIds));
  // A claim without an EIP may have one whose id was lost; an unreadable claim may name any.
  const pending = new Set(
    claims
      .filter(({ claim, eipIds }) => claim === undefined || eipIds.length === 0 || hasIntent(claim))
      .map(({ key }) => claimTag(key)),
  );
  return (eip) => isChanging(eip) || named.has(eip.eipId) || pending.has(eip.tags[EIP_TAG.claim] ?? '');
}

function hasIntent(claim: NonNullable<EipClaimEntry['claim']>): boolean {
  return (claim.status?.intents?.length ?? 0) > 0;
}

function isChanging({ status }: Eip): boolean {
  return TRANSITIONAL_STATES.includes(status) || RELEASING_STATES.includes(status);
}

function differs({ claim }: EipClaimEntry, eips: ReadonlyMap<string, Eip>): boolean {
  const { phase, eipID, privateIP, eniID, publicIP } = claim?.status ?? {};
  if (claim === undefined || eipID === undefined || hasIntent(claim)) return false;
  const eip = eips.get(eipID);
  if (eip === undefined) return true;
  if (isChanging(eip)) return false;
  if (phase === 'Bound') return eip.privateIp !== privateIP || eip.eniId !== eniID || eip.publicIp !== publicIP;
  return phase === 'Retained' && eip.publicIp !== publicIP;
}
