import { NODE_ANNOTATION } from '../../crd/names.ts';
import { annotationsOf, type NodeEniConfig } from '../../crd/node-eni-config.ts';
import { type ReadNodeSettings, readNodeSettings } from '../../crd/node-eni-config-annotations.ts';
import { nodeUsageOf } from '../../crd/node-usage.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { IpamdEventReason } from '../event-reasons.ts';
import type { Leaving, NodeInstance, NodeProblem, NodeView } from '../nec/node-view.ts';
import type { NecEntry } from '../node/nec-entry.ts';
import type { NodeFactParts, NodeFacts, NodeFactsAnswer } from '../node/node-deps.ts';
import { PODS_BY_NODE, type PodFacts, podKeyOf } from '../records/pod-facts.ts';
import type { Choices } from '../subnets/decide-choices.ts';
import { readSubnetLabel } from '../subnets/decide-subnet-config.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import { decideInstance, type InstanceJudgement } from './decide-instance.ts';
import { decideLeaving } from './decide-leaving.ts';
import { readDesiredPodNum } from './decide-policy.ts';
import { decideSecurityGroups } from './decide-security-groups.ts';
import type { InstanceBook } from './instance-book.ts';
import { findInstanceId, type MachineView } from './machine-entry.ts';
import type { NodeEntry } from './node-entry.ts';
import type { NodeSettingsFlags } from './node-flags.ts';

/** Dependencies of the facts about nodes. */
export type NodeFactsDeps = {
  readonly nodes: Pick<Informer<NodeEntry>, 'get' | 'isSynced'>;
  /** Absent where the cluster has no Machines. */
  readonly machines?: MachineView;
  /** With {@link PODS_BY_NODE} as an index. */
  readonly pods: Pick<Informer<PodFacts>, 'byIndex' | 'isSynced'>;
  readonly instances: InstanceBook;
  readonly subnets: Subnets;
  readonly clock: Clock;
  readonly flags: NodeSettingsFlags;
  /** Requests of claims on nodes. Default: unknown. */
  readonly claims?: {
    wishesOf(nodeName: string): NodeView['claims'];
    reservedIps(): ReadonlyMap<string, string>;
  };
  /** Where the released static addresses of a node are by now. Default: unknown. */
  readonly movedTo?: (nodeName: string) => NodeView['movedTo'];
  /** Static exclusive ENIs, as far as a node needs them. Default: none. */
  readonly keptEnis?: (nodeName: string, wishes: NodeView['claims']) => NodeView['keptEnis'];
};

/** Facts for the node controller, beside those for every node's reconcile. */
export type KnownNodeFacts = NodeFacts & {
  /** Returns the instance of a Node; undefined when unknown. */
  instanceIdOf(node: NodeEntry | undefined): string | undefined;
  /** Decides which instance the NodeENIConfig belongs to. */
  instanceOf(node: NodeEntry | undefined, config: NodeEniConfig): InstanceJudgement;
  /** Returns the annotations of the NodeENIConfig, validated against the addresses that the node's Pods use. */
  settingsOf(name: string, config: NodeEniConfig): ReadNodeSettings;
  /**
   * Returns the milliseconds since the Node was first missing, or replaced by one of another instance; 0 when it
   * exists.
   */
  goneForMs(name: string, config: NodeEniConfig | undefined): number;
  securityGroupsOf(name: string, config: NodeEniConfig): readonly string[] | undefined;
};

/** Retry while informers or the subnets are being read. */
const STARTING_MS = 1_000;
/** Retry while the instance was not described. */
const DESCRIBING_MS = 5_000;
/** Retry of an unreadable object; a change of it enqueues the node earlier. */
const UNREADABLE_MS = 60_000;

/** Makes the facts about nodes from caches. It only remembers since when Nodes are missing. */
export function createNodeFacts(deps: NodeFactsDeps): KnownNodeFacts {
  return new WatchedFacts(deps);
}

class WatchedFacts implements KnownNodeFacts {
  readonly #deps: NodeFactsDeps;
  readonly #goneSinceMs = new Map<string, number>();
  readonly #reservedSubnets: ReadonlySet<string>;

  constructor(deps: NodeFactsDeps) {
    this.#deps = deps;
    this.#reservedSubnets = new Set(deps.flags.onlyNominatedEniSubnets);
  }

  viewOf(name: string, entry: NecEntry): NodeFactsAnswer {
    const config = entry.decoded;
    if (config === undefined) return unknown('ObjectInvalid', 'nothing can be read from its status', UNREADABLE_MS);
    const { nodes, subnets, instances } = this.#deps;
    if (!nodes.isSynced || !subnets.isReady) {
      const [problem] = subnets.problems();
      if (problem !== undefined) return unknown(problem.reason, problem.message, DESCRIBING_MS);
      return unknown('InstanceUnknown', 'nodes and subnets are being read', STARTING_MS);
    }
    const { instanceId } = this.instanceOf(nodes.get(name), config);
    if (instanceId !== undefined && instances.presence(instanceId) === 'unknown')
      return unknown('InstanceUnknown', `the cloud was not asked for ${instanceId} yet, or had none`, DESCRIBING_MS);
    return { kind: 'known', parts: this.#partsOf(name, config, instanceId) };
  }

  subnetUsed(subnetId: string, count: number): void {
    this.#deps.subnets.use(subnetId, count);
  }

  subnetFull(subnetId: string): void {
    this.#deps.subnets.block(subnetId);
  }

  instanceIdOf(node: NodeEntry | undefined): string | undefined {
    return node === undefined ? undefined : findInstanceId(node, this.#deps.machines);
  }

  instanceOf(node: NodeEntry | undefined, config: NodeEniConfig): InstanceJudgement {
    const { creationTimestamp } = metadataOf(config);
    return decideInstance({
      held: config.status?.instanceID,
      own: this.instanceIdOf(node),
      nodeCreatedAt: node?.createdAt ?? '',
      configCreatedAt: typeof creationTimestamp === 'string' ? creationTimestamp : '',
    });
  }

  settingsOf(name: string, config: NodeEniConfig): ReadNodeSettings {
    const used = this.#ipsInUse(name);
    const usage = nodeUsageOf(config.status, (ip) => used.has(ip));
    return readNodeSettings(annotationsOf(config.object), usage);
  }

  goneForMs(name: string, config: NodeEniConfig | undefined): number {
    const node = this.#deps.nodes.get(name);
    if (node !== undefined && !this.#isReplaced(node, config)) {
      this.#goneSinceMs.delete(name);
      return 0;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    const since = this.#goneSinceMs.get(name) ?? nowMs;
    if (config === undefined) this.#goneSinceMs.delete(name);
    else this.#goneSinceMs.set(name, since);
    return nowMs - since;
  }

  securityGroupsOf(name: string, config: NodeEniConfig): readonly string[] | undefined {
    const { flags, instances, nodes } = this.#deps;
    const node = nodes.get(name);
    const { instanceId } = this.instanceOf(node, config);
    return decideSecurityGroups({
      isEnabled: flags.enableSecurityGroups,
      groups: flags.securityGroups,
      ofConfig: config.spec?.securityGroups,
      ofInstance: instanceId === undefined ? undefined : instances.find(instanceId)?.instance?.securityGroupIds,
      isCleared: node?.annotations[NODE_ANNOTATION.disableSecurityGroups] === 'yes',
    });
  }

  #partsOf(name: string, config: NodeEniConfig, instanceId: string | undefined): NodeFactParts {
    const { instances, subnets, flags, nodes } = this.#deps;
    const node = nodes.get(name);
    const { settings, faults } = this.settingsOf(name, config);
    const { spec } = config;
    const instance = instanceId === undefined ? undefined : instanceOf(instances, instanceId);
    const label = readSubnetLabel(node?.subnetsLabel);
    const place = { zone: instance?.zone ?? '', vpcId: instance?.vpcId ?? '' };
    const pods = this.#podsByIp(name);
    const choices = subnets.choicesOf({ ofConfig: spec?.subnetIDs, ofLabel: label.subnetIds, ...place });
    const maxDirectENI = Math.min(spec?.maxDirectENI ?? 0, settings.directMaxAttach ?? Number.MAX_SAFE_INTEGER);
    const directWarm = settings.directWarm?.min ?? spec?.directENIMinWarmTarget ?? flags.eniMinWarmTarget;
    const warm = settings.routeWarm?.min ?? spec?.routeENIIPMinWarmTarget ?? flags.ipMinWarmTarget;
    const notes = [
      ...faults.map(({ path, expected, got }) => `${path}: expected ${expected}, got ${got}`),
      ...annotationNotes(node),
    ];
    return {
      leaving: this.#leavingOf(name, config, instanceId),
      instance,
      maxRouteENI: least(spec?.maxRouteENI, settings.routeMaxAttach),
      maxIPPerENI: least(spec?.maxIPPerENI, settings.maxIpPerEni),
      floor: spec?.desiredRouteENIPodNum ?? 0,
      initialDemand: warm,
      warmTarget: warm,
      maxDirectENI,
      initialDirectDemand: maxDirectENI > 0 ? directWarm : 0,
      subnets: choices.subnets,
      reservedSubnets: this.#reservedSubnets,
      securityGroups: this.securityGroupsOf(name, config),
      inUse: new Set(pods.keys()),
      ...this.#claimsOf(name),
      ...this.#claimSubnetsOf(name, choices.subnets, place),
      problems: [
        ...problem('AnnotationInvalid', notes.join('; ')),
        ...problem('SubnetUnknown', uselessSubnets(choices, label.wrong, instance)),
        ...problem('ObjectInvalid', offersInUse(config, pods)),
        ...problem('InstanceTypeUnknown', this.#guessedLimits(instanceId)),
        ...subnets.problems(),
      ],
    };
  }

  /** Returns the subnets that Pods of the node name; only these Pods use them here. */
  #claimSubnetsOf(
    name: string,
    own: Choices['subnets'],
    place: { readonly zone: string; readonly vpcId: string },
  ): Pick<NodeFactParts, 'claimSubnets'> {
    const wishes = [...(this.#deps.claims?.wishesOf(name)?.values() ?? [])].filter(({ want }) => want === 'here');
    const known = new Set(own.map(({ subnetId }) => subnetId));
    const named = new Set(wishes.flatMap(({ subnetIds = [] }) => subnetIds).filter((id) => !known.has(id)));
    if (named.size === 0) return {};
    return { claimSubnets: this.#deps.subnets.choicesOf({ ofConfig: [...named], ofLabel: [], ...place }).subnets };
  }

  #claimsOf(name: string): Pick<NodeFactParts, 'claims' | 'reservedIps' | 'movedTo' | 'keptEnis'> {
    const wishes = this.#deps.claims?.wishesOf(name);
    const reservedIps = this.#deps.claims?.reservedIps();
    const keptEnis = this.#deps.keptEnis?.(name, wishes);
    const movedTo = this.#deps.movedTo?.(name);
    return {
      ...(movedTo === undefined || movedTo.size === 0 ? {} : { movedTo }),
      ...(keptEnis === undefined ? {} : { keptEnis }),
      ...(wishes === undefined ? {} : { claims: wishes }),
      ...(reservedIps === undefined ? {} : { reservedIps }),
    };
  }

  #leavingOf(name: string, config: NodeEniConfig, instanceId: string | undefined): Leaving {
    const { flags, instances, nodes } = this.#deps;
    const node = nodes.get(name);
    const isReplaced = node !== undefined && this.#isReplaced(node, config);
    return decideLeaving(
      {
        presence: instances.presence(instanceId),
        isNodeGone: node === undefined || isReplaced,
        isNodeReady: node?.isReady === true && !isReplaced,
        goneForMs: this.goneForMs(name, config),
        isConfigLeaving: config.metadata.deletionTimestamp !== undefined,
        isDisabled: node?.annotations[NODE_ANNOTATION.disableEni] === 'true',
        hasLivePods: this.#hasLivePods(name, isReplaced ? config : undefined),
      },
      flags.nodeReleaseGraceMs,
    );
  }

  /**
   * Tells whether the node has live Pods. If another instance took the node's name, only Pods on the ENIs of the former
   * instance count.
   */
  #hasLivePods(name: string, replaced: NodeEniConfig | undefined): boolean | undefined {
    const { pods } = this.#deps;
    if (!pods.isSynced) return undefined;
    const live = pods.byIndex(PODS_BY_NODE, name);
    if (replaced === undefined) return live.length > 0;
    const ips = new Set((replaced.status?.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map(({ ip }) => ip)));
    return live.some((pod) => pod.ips.some((ip) => ips.has(ip)));
  }

  #isReplaced(node: NodeEntry, config: NodeEniConfig | undefined): boolean {
    return config !== undefined && this.instanceOf(node, config).isReplaced;
  }

  #ipsInUse(name: string): ReadonlySet<string> {
    return new Set(this.#deps.pods.byIndex(PODS_BY_NODE, name).flatMap(({ ips }) => ips));
  }

  #podsByIp(name: string): ReadonlyMap<string, PodFacts> {
    const pods = this.#deps.pods.byIndex(PODS_BY_NODE, name);
    return new Map(pods.flatMap((pod) => pod.ips.map((ip) => [ip, pod] as const)));
  }

  #guessedLimits(instanceId: string | undefined): string {
    const record = instanceId === undefined ? undefined : this.#deps.instances.find(instanceId);
    if (record?.limits?.source !== 'table' || record.instance === undefined) return '';
    const { instanceType, cores } = record.instance;
    const { secondaryEnis, secondaryIpsPerEni } = record.limits;
    const taken = `${secondaryEnis} ENIs of ${secondaryIpsPerEni} addresses are taken from the table, by its ${cores} cores`;
    return `the cloud does not tell the limits of instance type ${JSON.stringify(instanceType)}; ${taken}`;
  }
}

function instanceOf(instances: InstanceBook, instanceId: string): NodeInstance | undefined {
  const { instance, limits } = instances.find(instanceId) ?? {};
  const presence = instances.presence(instanceId);
  if (instance === undefined || limits === undefined || presence === 'gone') return undefined;
  const { instanceType, zone, vpcId } = instance;
  const { secondaryEnis, secondaryIpsPerEni } = limits;
  return {
    instanceId,
    instanceType,
    zone,
    vpcId,
    isRunning: presence === 'running',
    secondaryEnis,
    secondaryIpsPerEni,
  };
}

function metadataOf({ object }: NodeEniConfig): Readonly<Record<string, unknown>> {
  return isRecord(object['metadata']) ? object['metadata'] : {};
}

/** Lists the faults of the annotations of the Node itself. */
export function annotationNotes(node: NodeEntry | undefined): readonly string[] {
  const annotations = node?.annotations ?? {};
  const wrong = (name: string, expected: string) =>
    `annotation ${name} of the Node: expected ${expected}, got ${JSON.stringify(annotations[name])}`;
  const { desiredPodNum, disableSecurityGroups, disableEni, syncSecurityGroups } = NODE_ANNOTATION;
  const isOneOf = (name: string, words: readonly string[]) => words.includes(annotations[name] ?? words[0] ?? '');
  return [
    ...(readDesiredPodNum(annotations).isGood ? [] : [wrong(desiredPodNum, 'a whole number in quotes')]),
    ...(isOneOf(disableSecurityGroups, ['yes', 'no']) ? [] : [wrong(disableSecurityGroups, 'yes or no')]),
    ...(isOneOf(disableEni, ['true', 'false']) ? [] : [wrong(disableEni, 'true or false')]),
    ...(isOneOf(syncSecurityGroups, ['true', 'false']) ? [] : [wrong(syncSecurityGroups, 'true or false')]),
  ];
}

/**
 * Lists offers of addresses that live Pods use. A terminating Pod is left out: it may have released its address
 * already, and then the agent's offer is valid.
 */
function offersInUse({ spec, status }: NodeEniConfig, pods: ReadonlyMap<string, PodFacts>): string {
  const own = new Map((status?.eniInfos ?? []).map(({ eniID, primaryIP = '' }) => [eniID, primaryIP]));
  const ofEnis = (spec?.releasableENIs ?? []).map(({ eniID }) => ({ ip: own.get(eniID) ?? '' }));
  const used = [...(spec?.releasableIPs ?? []), ...ofEnis].flatMap(({ ip }) => {
    const pod = pods.get(ip);
    return pod === undefined || pod.isLeaving ? [] : [`${ip} of Pod ${podKeyOf(pod)}`];
  });
  return used.length === 0 ? '' : `the spec offers what is in use, and it is not taken: ${used.join(', ')}`;
}

function uselessSubnets(
  { unknown: unknownIds, elsewhere }: Choices,
  wrong: readonly string[],
  instance: NodeInstance | undefined,
): string {
  const ids = [...unknownIds, ...wrong];
  const missing = ids.length === 0 ? [] : [`named for this node, and not known to the cloud: ${ids.join(', ')}`];
  // Without a known instance it is not known which subnets are elsewhere.
  const misplaced = instance === undefined ? [] : elsewhere.map((subnet) => placeOf(subnet, instance));
  return [...missing, ...misplaced].join('; ');
}

function placeOf({ subnetId, vpcId, zone }: Choices['elsewhere'][number], instance: NodeInstance): string {
  const named = `named for this node: ${subnetId} is in`;
  return vpcId === instance.vpcId
    ? `${named} zone ${zone}, the node in ${instance.zone}`
    : `${named} ${vpcId}, the node in ${instance.vpcId}`;
}

function problem(reason: IpamdEventReason, message: string): readonly NodeProblem[] {
  return message === '' ? [] : [{ reason, message }];
}

function unknown(reason: IpamdEventReason, message: string, afterMs: number): NodeFactsAnswer {
  return { kind: 'unknown', problem: { reason, message }, afterMs };
}

function least(first: number | undefined, second: number | undefined): number | undefined {
  return first === undefined || second === undefined ? (first ?? second) : Math.min(first, second);
}
