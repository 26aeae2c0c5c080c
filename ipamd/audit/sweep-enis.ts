import type { CallContext, Cloud, Eni } from '../../cloud/cloud.ts';
import type { OrphanKind } from '../../cloud/orphan-sweep.ts';
import { ENI_TAG, isOwnEni } from '../../crd/cloud-tags.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, VPC_ENIS } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import { collectOrphan } from './collect-orphan.ts';
import { type AuditedNec, beginComparison, type ComparisonDeps } from './compare-nodes.ts';
import { recordOrphan, reportOrphan, type SweepDeps } from './run-sweep.ts';

/** Dependencies of the sweep of ENIs. */
export type EniSweepDeps = SweepDeps &
  ComparisonDeps & {
    readonly cloud: Pick<Cloud, 'enis' | 'tasks' | 'instances'>;
    /** Other objects that may name ENIs or have intents (VpcENIs). */
    readonly others: () => Iterable<KubeObject>;
    /** Instances of the cluster's nodes, whether they have a NodeENIConfig or not. */
    readonly instanceIds: () => Iterable<string>;
    /** Reports whether every cache that the sweep reads has its first list. */
    readonly isSynced: () => boolean;
    /** Reads what `convertEni` needs for these ENIs. @throws CloudError */
    readonly loadSubnets: (enis: readonly Eni[], context: CallContext) => Promise<void>;
  };

/** The pages of a large VPC take long at the lowest priority. */
const SWEEP_TIMEOUT_MS = 600_000;
const LOST = 'definitions of resources were lost a short time ago, its object may be restored from a backup';
/** Names that the API server accepts. */
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;
/** Number of orphans in one line of the log. */
const MAX_LISTED = 20;

/**
 * Compares all objects of the cluster with all its ENIs, by one paged list. Nodes that differ describe the cloud. An ENI that
 * ipamd created for this cluster, and that no object and no intent names, neither by id nor by the name from its creation, is
 * an orphan, and is deleted in the end. One on an instance of the cluster is none: its object is repaired. One that is being
 * changed is left for the next sweep.
 */
export function sweptEnis(deps: EniSweepDeps): OrphanKind<Eni> {
  const { cloud, kube, log, necs, isSynced, definitions, config } = deps;
  const names = (): EniNames => {
    const others = [...deps.others()].map(trusted);
    return collectEniNames([...[...necs.values()].map(namingNec), ...others], deps.instanceIds());
  };
  return {
    skipMessage: 'audit skipped',
    idOf: ({ eniId }) => eniId,
    list: async (context) => {
      if (!isSynced()) return 'NotSynced';
      const compare = beginComparison(deps);
      const tag = { key: ENI_TAG.cluster, value: config.clusterId };
      const patient = { ...context, timeoutMs: SWEEP_TIMEOUT_MS };
      const sweep = await cloud.enis.sweep({ tag }, patient);
      if (!sweep.isConsistent) return 'SweepInconsistent';
      const enis = sweep.enis.filter((eni) => !eni.isPrimary);
      await deps.loadSubnets(enis, patient);
      if (!isSynced()) return 'NotSynced';
      compare(enis);
      return enis;
    },
    isOurs: ({ isPrimary, tags }) => !isPrimary && isOwnEni(tags, config.clusterId),
    ownerCheck: () => {
      if (!isSynced()) return undefined;
      const known = names();
      return (eni) => eni.state !== 'AVAILABLE' || isNamed(eni, known);
    },
    limit: () => config.orphanLimit,
    // On an instance: it may have to stay there.
    isLast: ({ attachment }) => attachment !== undefined,
    lookAgain: async ({ eniId }, { signal, ...context }) => {
      const [now] = await cloud.enis.describe([eniId], { signal, ...context });
      if (now === undefined) return undefined;
      const { [ENI_TAG.node]: node } = now.tags;
      const nec = node === undefined ? undefined : await kube.get(NODE_ENI_CONFIGS, { name: node }, signal);
      // A VpcENI is named as its ENI, or by the ENI's id.
      const ids = [...new Set([now.name, eniId])].filter((name) => OBJECT_NAME.test(name));
      const others = await Promise.all(ids.map((name) => kube.get(VPC_ENIS, { name }, signal)));
      const objects = [nec, ...others].filter((one) => one !== undefined);
      return isNamed(now, collectEniNames(objects.map(trusted), [])) ? undefined : now;
    },
    remove: async (eni, context) => {
      const why = config.orphanDryRun ? 'dry run' : definitions.wereLostLately ? LOST : undefined;
      return why === undefined ? await collectOrphan(cloud, eni, context) : { kind: 'later', why };
    },
    report: ({ eniId, name, attachment, tags: { [ENI_TAG.node]: node } }, outcome) => {
      if (outcome.kind === 'waiting' || outcome.kind === 'spared') return;
      const orphan = { name, nodeName: node, instanceId: attachment?.instanceId };
      const error = outcome.kind === 'failed' ? outcome.error : undefined;
      log.info('orphaned ENI', { eniId, ...orphan, ...outcome, error, outcome: outcome.kind });
      const whose = node === undefined ? '' : `, made for node ${node}`;
      reportOrphan(deps, WORDS, `ENI ${eniId} (${name}${whose})`, outcome);
    },
    reportTooMany: (orphans, ownCount) => {
      const text = `${orphans.length} of the ${ownCount} ENIs that ipamd created for this cluster have no owner; none is deleted. Were NodeENIConfigs lost, or is --clusterid that of another cluster?`;
      const listed = orphans.slice(0, MAX_LISTED).map(({ eniId }) => eniId);
      log.error('too many orphaned ENIs', { orphans: listed, enis: ownCount });
      recordOrphan(deps, 'Warning', 'TooManyOrphanENIs', text);
    },
  };
}

const WORDS = {
  reasons: ['OrphanENI', 'OrphanENIDeleted'],
  lacks: ['has no owner', 'had no owner'],
  removed: 'deleted',
} as const;

function namingNec({ object, decoded }: AuditedNec): NamingObject {
  const { spec, status } = decoded ?? {};
  // The agent has seen a later epoch than the object has: an older state was restored.
  const isRestored = (spec?.observedSupplyEpoch ?? 0) > (status?.supplyEpoch ?? 0);
  return { name: object.metadata.name, object, isTrusted: decoded !== undefined && !isRestored };
}

function trusted(object: KubeObject): NamingObject {
  return { name: object.metadata.name, object, isTrusted: true };
}

/** Ids and names in the cluster's objects: an ENI that matches any of them is no orphan. */
type EniNames = {
  /** Ids of ENIs, from status and intents of objects. */
  readonly eniIds: ReadonlySet<string>;
  /** Deterministic names of ENIs that an intent may be creating. */
  readonly resourceNames: ReadonlySet<string>;
  /** Instances of the cluster's nodes. */
  readonly instanceIds: ReadonlySet<string>;
  /** Nodes whose object is unreadable or not reliable now: an ENI with their tag may be theirs. */
  readonly unreadableNodes: ReadonlySet<string>;
};

/** An object that may name ENIs: a NodeENIConfig, or another kind that has intents. */
type NamingObject = {
  readonly name: string;
  /** As the API server has it, whole. */
  readonly object: unknown;
  /** False when its content may not be the present state: it cannot be decoded, or an old state was restored. */
  readonly isTrusted: boolean;
};

const ENI_ID = /^eni-[a-z0-9]+$/;
const INSTANCE_ID = /^ins-[a-z0-9]+$/;
/** Objects are not deeper than this; JSON has no cycles. */
const MAX_DEPTH = 32;

/**
 * Collects every id of an ENI or instance, and every resource name, anywhere in the objects: in known and unknown
 * fields, valid or not. A missed one would cost a Pod its network; a superfluous one only leaves an ENI undeleted.
 */
function collectEniNames(objects: Iterable<NamingObject>, instanceIds: Iterable<string>): EniNames {
  const names = {
    eniIds: new Set<string>(),
    resourceNames: new Set<string>(),
    instanceIds: new Set(instanceIds),
    unreadableNodes: new Set<string>(),
  };
  const visit = (value: unknown, key: string, depth: number): void => {
    if (depth > MAX_DEPTH) return;
    if (typeof value === 'string') {
      if (key === 'resourceName') names.resourceNames.add(value);
      else if (ENI_ID.test(value)) names.eniIds.add(value);
      else if (INSTANCE_ID.test(value)) names.instanceIds.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value) visit(item, key, depth + 1);
    } else if (isRecord(value)) {
      for (const [name, item] of Object.entries(value)) if (name !== 'managedFields') visit(item, name, depth + 1);
    }
  };
  for (const { name, object, isTrusted } of objects) {
    visit(object, '', 0);
    if (!isTrusted) names.unreadableNodes.add(name);
  }
  return names;
}

/** Reports whether any of the objects names an ENI, or has the instance that it is on, or may be an unreadable owner. */
function isNamed({ eniId, name, attachment, tags }: Eni, names: EniNames): boolean {
  if (names.eniIds.has(eniId) || names.resourceNames.has(name)) return true;
  if (attachment !== undefined && names.instanceIds.has(attachment.instanceId)) return true;
  return names.unreadableNodes.has(tags[ENI_TAG.node] ?? '');
}
