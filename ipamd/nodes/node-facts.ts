import { type CheckedEni, gatewaysOf, refusalsOfEni } from '../../crd/eni-refusals.ts';
import { ALLOW_RELEASE_ANNOTATION, NODE_ANNOTATION, RELEASE_BEGUN_ANNOTATION } from '../../crd/names.ts';
import { annotationsOf, type NodeEniConfig } from '../../crd/node-eni-config.ts';
import { type ReadNodeSettings, readNodeSettings } from '../../crd/node-eni-config-annotations.ts';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { nodeLimitsOf } from '../../crd/node-limits.ts';
import { nodeUsageOf } from '../../crd/node-usage.ts';
import { renderFault } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import { joinLimited } from '../../runtime/limit-text.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import { findInstanceId, type MachineView } from '../cache/machine-entry.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import { PODS_BY_NODE, type PodFacts, podKeyOf } from '../cache/pod-facts.ts';
import { findRegistrations, type NodeRegistrations, type RegisteredIps } from '../cache/registered-ips.ts';
import type { NodeFactsAnswer, NodeFactsSource } from '../calls/node-deps.ts';
import type { Term } from '../calls/term.ts';
import type { Leaving, NodeFactValues, NodeInstance, NodeProblem, NodeView } from '../decide/node-view.ts';
import type { IpamdEventReason } from '../events/event-reasons.ts';
import type { StaticEniIndex } from '../exclusive/static-eni-index.ts';
import type { Choices } from '../subnets/decide-choices.ts';
import { readSubnetLabel } from '../subnets/decide-subnet-config.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { AddressLookup } from './address-lookup.ts';
import { decideInstance, type InstanceDecision } from './decide-instance.ts';
import { type DepartureEvidence, decideLeaving, weighDeparture } from './decide-leaving.ts';
import { readDesiredPodNum } from './decide-policy.ts';
import { isUnlisted } from './decide-presence.ts';
import { decideSecurityGroups } from './decide-security-groups.ts';
import type { InstanceCache } from './instance-cache.ts';
import type { NodeSettingsFlags } from './node-flags.ts';
import { isStaying } from './renewals.ts';

/** Dependencies of the facts about nodes. */
type NodeFactsDeps = Pick<Term, 'nodes' | 'pods' | 'clock'> & {
  readonly config: NodeSettingsFlags;
  /** Absent where the cluster has no Machines. */
  readonly machines?: MachineView;
  readonly instances: InstanceCache;
  readonly lookup: Pick<AddressLookup, 'find'>;
  readonly subnets: Subnets;
  /** Requests of claims on nodes. Default: unknown. */
  readonly requests?: {
    requestsOf(nodeName: string): NodeView['claims'];
    reservedIps(): ReadonlyMap<string, string>;
  };
  /** Addresses that load balancers may still have. Default: none. */
  readonly registered?: RegisteredIps | undefined;
  /** Addresses that stay on a node's ENIs for others than its Pods and claims. Default: none. */
  readonly keptIps?: (node: NodeEntry) => NodeView['ciliumIps'];
  /** Where the released static addresses of a node are by now. Default: unknown. */
  readonly movedTo?: (nodeName: string) => NodeView['movedTo'];
  /** Finds another Node that has the instance of a node. Default: there is none. */
  readonly rivalOf?: (name: string, instanceId: string) => string | undefined;
  /** Static exclusive ENIs, as far as a node needs them. Default: none. */
  readonly staticEnis?: Pick<StaticEniIndex, 'ofNode'>;
};

type UnknownFacts = Extract<NodeFactsAnswer, { readonly kind: 'unknown' }>;
type FoundNode = {
  readonly kind: 'found';
  readonly config: NodeEniConfig;
  readonly instanceId: string | undefined;
};

/** Facts for the node controller, beside those for every node's reconcile. */
export type KnownNodeFacts = NodeFactsSource & {
  /** Returns when to ask again for a node of which nothing can be decided yet, milliseconds; undefined: `viewOf` knows it. */
  unknownFor(name: string, entry: NecEntry): number | undefined;
  /** Returns the instance of a Node; undefined when unknown. */
  instanceIdOf(node: NodeEntry | undefined): string | undefined;
  /** Decides which instance the NodeENIConfig belongs to. */
  instanceOf(node: NodeEntry | undefined, config: NodeEniConfig): InstanceDecision;
  /** Returns the annotations of the NodeENIConfig, validated against the addresses that the node's Pods use. */
  settingsOf(name: string, config: NodeEniConfig): ReadNodeSettings;
  /**
   * Returns the milliseconds since the Node was first missing, or replaced by one of another instance; 0 when it
   * exists.
   */
  absentForMs(name: string, config: NodeEniConfig | undefined): number;
  securityGroupsOf(name: string, config: NodeEniConfig): readonly string[] | undefined;
  /** Weighs whether the node is gone. */
  departureOf(name: string, entry: Pick<NecEntry, 'object' | 'decoded'>): DepartureEvidence;
  /** Reports whether an absent Node has to be read from the API server: it never was, or some time ago. */
  isReadDue(name: string): boolean;
  /** Notes whether the API server answered that the Node does not exist. */
  noteRead(name: string, isAbsent: boolean): void;
};

/** Retry while informers or the subnets are being read. */
const STARTING_MS = 1_000;
/** Retry while the instance was not described. */
const DESCRIBING_MS = 5_000;
/** Retry of a node whose instance another one has; a change of its Node enqueues it earlier. */
const TAKEN_MS = 30_000;
/** Retry of an unreadable object; a change of it enqueues the node earlier. */
const UNREADABLE_MS = 60_000;
/** An absent Node is read again after this, when its node is reconciled. */
const READ_AGAIN_MS = 10_000;
/** The answer to a read of an absent Node counts for this long: two rechecks of the node controller. */
const READ_COUNTS_MS = 150_000;

/** Makes the facts about nodes from caches. It only remembers since when Nodes are missing. */
export function createNodeFacts(deps: NodeFactsDeps): KnownNodeFacts {
  return new CachedNodeFacts(deps);
}

class CachedNodeFacts implements KnownNodeFacts {
  readonly #deps: NodeFactsDeps;
  readonly #absentSinceMs = new Map<string, number>();
  /** The last answers to reads of absent Nodes. */
  readonly #reads = new Map<string, { readonly isAbsent: boolean; readonly atMs: number }>();
  readonly #reservedSubnets: ReadonlySet<string>;

  constructor(deps: NodeFactsDeps) {
    this.#deps = deps;
    this.#reservedSubnets = new Set(deps.config.onlyNominatedEniSubnets);
  }

  viewOf(name: string, entry: NecEntry): NodeFactsAnswer {
    const found = this.#find(name, entry);
    if (found.kind === 'unknown') return found;
    return { kind: 'known', values: this.#valuesOf(name, found.config, entry.object, found.instanceId) };
  }

  unknownFor(name: string, entry: NecEntry): number | undefined {
    const found = this.#find(name, entry);
    return found.kind === 'unknown' ? found.afterMs : undefined;
  }

  /** Finds what must be known of a node before anything can be decided: its object, and its instance. */
  #find(name: string, { decoded: config, object }: NecEntry): UnknownFacts | FoundNode {
    if (config === undefined) return unknown('ObjectInvalid', 'nothing can be read from its status', UNREADABLE_MS);
    const { nodes, subnets, instances } = this.#deps;
    if (!nodes.isSynced || !subnets.isReady) {
      const [problem] = subnets.problems();
      if (problem !== undefined) return unknown(problem.reason, problem.message, DESCRIBING_MS);
      return unknown('InstanceUnknown', 'nodes and subnets are being read', STARTING_MS);
    }
    const node = nodes.get(name);
    const { instanceId } = this.instanceOf(node, config);
    const isStaying = node !== undefined && object.metadata.deletionTimestamp === undefined;
    const rival = isStaying && instanceId !== undefined ? this.#deps.rivalOf?.(name, instanceId) : undefined;
    if (rival !== undefined) return unknown('InstanceTaken', takenText(instanceId, rival), TAKEN_MS);
    if (instanceId !== undefined && instances.presence(instanceId) === 'unknown')
      return unknown('InstanceUnknown', `the cloud was not asked for ${instanceId} yet, or had none`, DESCRIBING_MS);
    return { kind: 'found', config, instanceId };
  }

  subnetUsed(subnetId: string, count: number): void {
    this.#deps.subnets.use(subnetId, count);
  }

  subnetFull(subnetId: string): void {
    this.#deps.subnets.block(subnetId);
  }

  instanceIdOf(node: NodeEntry | undefined): string | undefined {
    if (node === undefined) return undefined;
    return findInstanceId(node, this.#deps.machines) ?? this.#deps.lookup.find(node);
  }

  instanceOf(node: NodeEntry | undefined, config: NodeEniConfig): InstanceDecision {
    const { creationTimestamp } = metadataOf(config);
    return decideInstance({
      ofConfig: config.status?.instanceID,
      ofNode: this.instanceIdOf(node),
      nodeCreatedAt: node?.createdAt ?? '',
      configCreatedAt: typeof creationTimestamp === 'string' ? creationTimestamp : '',
    });
  }

  settingsOf(name: string, config: NodeEniConfig): ReadNodeSettings {
    const used = this.#ipsInUse(name);
    const usage = nodeUsageOf(config.status, (ip) => used.has(ip));
    return readNodeSettings(annotationsOf(config.object), usage);
  }

  absentForMs(name: string, config: NodeEniConfig | undefined): number {
    const node = this.#deps.nodes.get(name);
    if (node !== undefined && !this.#isReplaced(node, config)) {
      this.#absentSinceMs.delete(name);
      this.#reads.delete(name);
      return 0;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    const since = this.#absentSinceMs.get(name) ?? nowMs;
    if (config === undefined) {
      this.#absentSinceMs.delete(name);
      this.#reads.delete(name);
    } else this.#absentSinceMs.set(name, since);
    return nowMs - since;
  }

  securityGroupsOf(name: string, config: NodeEniConfig): readonly string[] | undefined {
    const { config: flags, instances, nodes } = this.#deps;
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

  isReadDue(name: string): boolean {
    const read = this.#reads.get(name);
    return read === undefined || this.#deps.clock.monotonicMs() - read.atMs >= READ_AGAIN_MS;
  }

  noteRead(name: string, isAbsent: boolean): void {
    this.#reads.set(name, { isAbsent, atMs: this.#deps.clock.monotonicMs() });
  }

  departureOf(name: string, { object, decoded }: Pick<NecEntry, 'object' | 'decoded'>): DepartureEvidence {
    const { instances, nodes, clock } = this.#deps;
    const node = nodes.get(name);
    const { instanceId, isReplaced } =
      decoded === undefined
        ? { instanceId: this.instanceIdOf(node), isReplaced: false }
        : this.instanceOf(node, decoded);
    const read = this.#reads.get(name);
    const isReadFresh = read !== undefined && clock.monotonicMs() - read.atMs < READ_COUNTS_MS;
    const { annotations = {} } = object.metadata;
    const presence = instances.presence(instanceId);
    const record = instanceId === undefined ? undefined : instances.find(instanceId);
    return weighDeparture({
      isNodeAbsent: node === undefined,
      isAbsentWhenRead: isReadFresh ? read.isAbsent : undefined,
      isReplaced,
      isNodeReady: node?.isReady === true,
      presence,
      isInstanceUnlisted: isUnlisted(record),
      isDescriptionDue: instanceId !== undefined && (presence === 'unknown' || (record?.missed ?? 0) > 0),
      isBegun: annotations[RELEASE_BEGUN_ANNOTATION] !== undefined,
      isConfirmed: annotations[ALLOW_RELEASE_ANNOTATION] === 'true',
      hasNodes: nodes.size > 0,
    });
  }

  #valuesOf(
    name: string,
    config: NodeEniConfig,
    object: NecEntry['object'],
    instanceId: string | undefined,
  ): NodeFactValues {
    const { instances, subnets, config: flags, nodes } = this.#deps;
    const node = nodes.get(name);
    const { settings, faults } = this.settingsOf(name, config);
    const { spec } = config;
    const instance = instanceId === undefined ? undefined : instanceOf(instances, instanceId);
    const label = readSubnetLabel(node?.subnetsLabel);
    const location = { zone: instance?.zone ?? '', vpcId: instance?.vpcId ?? '' };
    const pods = this.#podsByIp(name);
    const choices = subnets.choicesOf({ ofConfig: spec?.subnetIDs, ofLabel: label.subnetIds, ...location });
    const {
      routeEnis: maxRouteENI,
      ipsPerEni: maxIPPerENI,
      exclusiveEnis: maxDirectENI,
    } = nodeLimitsOf(spec, settings);
    const directWarm = settings.directWarm?.min ?? spec?.directENIMinWarmTarget ?? flags.eniMinWarmTarget;
    const warm = settings.routeWarm?.min ?? spec?.routeENIIPMinWarmTarget ?? flags.ipMinWarmTarget;
    const notes = [...faults.map(renderFault), ...annotationNotes(node)];
    const leaving = this.#leavingOf(name, config, object, instanceId);
    const { held, overdue } = this.#registrationsOf(config, leaving, pods);
    return {
      leaving,
      ...(object.metadata.deletionTimestamp !== undefined && leaving === 'no' && instance?.isRunning === true
        ? { isRenewed: true }
        : {}),
      podNames: new Map([...pods].map(([ip, pod]) => [ip, podKeyOf(pod)])),
      instance,
      maxRouteENI,
      maxIPPerENI,
      floor: spec?.desiredRouteENIPodNum ?? 0,
      initialDemand: warm,
      warmTarget: warm,
      maxDirectENI,
      initialExclusiveDemand: maxDirectENI > 0 ? directWarm : 0,
      subnets: choices.subnets,
      reservedSubnets: this.#reservedSubnets,
      securityGroups: this.securityGroupsOf(name, config),
      inUse: new Set(pods.keys()),
      ...(held.size === 0 ? {} : { registered: held }),
      ...this.#ciliumIpsOf(node),
      ...this.#claimsOf(name),
      ...this.#claimSubnetsOf(name, choices.subnets, location),
      problems: [
        ...problem('AnnotationInvalid', notes.join('; ')),
        ...problem('SubnetUnknown', unusableSubnets(choices, label.invalid, instance)),
        ...problem('ObjectInvalid', offersInUse(config, pods)),
        ...problem('ObjectInvalid', refusedParts(config, this.#privateIpsOf(instanceId))),
        ...problem('RegisteredTooLong', overdueText(overdue)),
        ...problem('InstanceTypeUnknown', this.#guessedLimits(instanceId)),
        ...subnets.problems(),
      ],
    };
  }

  #ciliumIpsOf(node: NodeEntry | undefined): Pick<NodeFactValues, 'ciliumIps'> {
    const ciliumIps = node && this.#deps.keptIps?.(node);
    return ciliumIps === undefined ? {} : { ciliumIps };
  }

  #registrationsOf(config: NodeEniConfig, leaving: Leaving, pods: ReadonlyMap<string, PodFacts>): NodeRegistrations {
    const { registered } = this.#deps;
    if (registered === undefined) return { held: new Set(), overdue: [] };
    // By force nothing is in use any more, whatever Pods the API server still lists.
    return findRegistrations(registered, { decoded: config }, (ip) => leaving !== 'force' && pods.has(ip));
  }

  #privateIpsOf(instanceId: string | undefined): readonly string[] {
    if (instanceId === undefined) return [];
    return this.#deps.instances.find(instanceId)?.instance?.privateIps ?? [];
  }

  /** Returns the subnets that Pods of the node name; only these Pods use them here. */
  #claimSubnetsOf(
    name: string,
    ownSubnets: Choices['subnets'],
    location: { readonly zone: string; readonly vpcId: string },
  ): Pick<NodeFactValues, 'claimSubnets'> {
    const requests = [...(this.#deps.requests?.requestsOf(name)?.values() ?? [])].filter(({ goal }) => goal === 'here');
    const known = new Set(ownSubnets.map(({ subnetId }) => subnetId));
    const named = new Set(requests.flatMap(({ subnetIds = [] }) => subnetIds).filter((id) => !known.has(id)));
    if (named.size === 0) return {};
    return { claimSubnets: this.#deps.subnets.choicesOf({ ofConfig: [...named], ofLabel: [], ...location }).subnets };
  }

  #claimsOf(name: string): Pick<NodeFactValues, 'claims' | 'reservedIps' | 'movedTo' | 'staticEnis'> {
    const requests = this.#deps.requests?.requestsOf(name);
    const reservedIps = this.#deps.requests?.reservedIps();
    const staticEnis = this.#deps.staticEnis?.ofNode(name, requests);
    const movedTo = this.#deps.movedTo?.(name);
    return {
      ...(movedTo === undefined || movedTo.size === 0 ? {} : { movedTo }),
      ...(staticEnis === undefined ? {} : { staticEnis }),
      ...(requests === undefined ? {} : { claims: requests }),
      ...(reservedIps === undefined ? {} : { reservedIps }),
    };
  }

  #leavingOf(name: string, config: NodeEniConfig, object: NecEntry['object'], instanceId: string | undefined): Leaving {
    const { config: flags, instances, nodes } = this.#deps;
    const node = nodes.get(name);
    const isReplaced = node !== undefined && this.#isReplaced(node, config);
    const evidence = this.departureOf(name, { object, decoded: config });
    return decideLeaving(
      {
        presence: instances.presence(instanceId),
        isNodeAbsent: node === undefined || isReplaced,
        isNodeReady: node?.isReady === true && !isReplaced,
        absentForMs: this.absentForMs(name, config),
        isConfigLeaving: config.metadata.deletionTimestamp !== undefined,
        isNodeStaying: node !== undefined && !isReplaced && isStaying(node),
        isDisabled: node?.annotations[NODE_ANNOTATION.disableEni] === 'true',
        isReleaseHeld: evidence !== 'none' && evidence !== 'enough',
        hasLivePods: this.#hasLivePods(name, isReplaced ? config : undefined),
      },
      flags.nodeReleaseGraceMs,
    );
  }

  /**
   * Reports whether the node has live Pods. If another instance took the node's name, only Pods on the ENIs of the former
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
    const used = `${secondaryEnis} ENIs of ${secondaryIpsPerEni} addresses are assumed from the table, by its ${cores} cores`;
    return `the cloud does not return the limits of instance type ${JSON.stringify(instanceType)}; ${used}`;
  }
}

function instanceOf(instances: InstanceCache, instanceId: string): NodeInstance | undefined {
  const { instance, limits } = instances.find(instanceId) ?? {};
  const presence = instances.presence(instanceId);
  if (instance === undefined || limits === undefined || presence === 'gone') return undefined;
  const { instanceType, zone, vpcId } = instance;
  const { secondaryEnis, extensionEnis, secondaryIpsPerEni } = limits;
  return {
    instanceId,
    instanceType,
    zone,
    vpcId,
    isRunning: presence === 'running',
    secondaryEnis,
    extensionEnis,
    secondaryIpsPerEni,
  };
}

function metadataOf({ object }: NodeEniConfig): Readonly<Record<string, unknown>> {
  return recordOf(object['metadata']);
}

/** Lists the faults of the annotations of the Node itself. */
export function annotationNotes(node: NodeEntry | undefined): readonly string[] {
  const annotations = node?.annotations ?? {};
  const fault = (name: string, expected: string) =>
    `annotation ${name} of the Node: expected ${expected}, got ${JSON.stringify(annotations[name])}`;
  const { desiredPodNum, disableSecurityGroups, disableEni, syncSecurityGroups } = NODE_ANNOTATION;
  const isOneOf = (name: string, values: readonly string[]) => values.includes(annotations[name] ?? values[0] ?? '');
  return [
    ...(readDesiredPodNum(annotations).isValid ? [] : [fault(desiredPodNum, 'a whole number in quotes')]),
    ...(isOneOf(disableSecurityGroups, ['yes', 'no']) ? [] : [fault(disableSecurityGroups, 'yes or no')]),
    ...(isOneOf(disableEni, ['true', 'false']) ? [] : [fault(disableEni, 'true or false')]),
    ...(isOneOf(syncSecurityGroups, ['true', 'false']) ? [] : [fault(syncSecurityGroups, 'true or false')]),
  ];
}

/**
 * Lists offers of addresses that live Pods use. A terminating Pod is left out: it may have released its address
 * already, and then the agent's offer is valid.
 */
function offersInUse({ spec, status }: NodeEniConfig, pods: ReadonlyMap<string, PodFacts>): string {
  const primaryIps = new Map((status?.eniInfos ?? []).map(({ eniID, primaryIP = '' }) => [eniID, primaryIP]));
  const ofEnis = (spec?.releasableENIs ?? []).map(({ eniID }) => ({ ip: primaryIps.get(eniID) ?? '' }));
  const used = [...(spec?.releasableIPs ?? []), ...ofEnis].flatMap(({ ip }) => {
    const pod = pods.get(ip);
    return pod === undefined || pod.isLeaving ? [] : [`${ip} of Pod ${podKeyOf(pod)}`];
  });
  return used.length === 0
    ? ''
    : `the spec offers addresses that are in use, they are not released: ${used.join(', ')}`;
}

/** Names what of the status the agent refuses: the cloud gives no such ENI, the status was edited. */
function refusedParts({ status }: NodeEniConfig, privateIps: readonly string[]): string {
  const enis = (status?.eniInfos ?? []).map((eni) => ({ eni, checked: checkedEni(eni) }));
  const gateways = enis.flatMap(({ checked }) => gatewaysOf(checked.families));
  const own = { addresses: new Set(privateIps), macs: new Map<string, string>(), peers: new Map(gateways) };
  const refused = enis.flatMap(({ eni, checked }) => {
    const { whole, addresses } = refusalsOfEni(checked, own);
    const ofAddresses = [...addresses].map(([ip, why]) => `${ip} of ${eni.eniID} is ${why}`);
    return whole === undefined ? ofAddresses : [`${eni.eniID}: ${whole}`, ...ofAddresses];
  });
  return refused.length === 0 ? '' : `the node cannot take: ${joinLimited(refused, '; ')}`;
}

function checkedEni(eni: NodeEniInfo): CheckedEni {
  const { primaryIP, gateway, subnetCIDR, primaryIPv6, gatewayIPv6, subnetIPv6CIDR } = eni;
  const families = [
    { primaryIp: primaryIP, gateway, subnetCidr: subnetCIDR },
    { primaryIp: primaryIPv6, gateway: gatewayIPv6, subnetCidr: subnetIPv6CIDR },
  ].flatMap(({ primaryIp, gateway: via, subnetCidr }) =>
    primaryIp === undefined || via === undefined || subnetCidr === undefined
      ? []
      : [{ primaryIp, gateway: via, subnetCidr }],
  );
  return { mac: eni.mac, families, addresses: (eni.addresses ?? []).map(({ ip }) => ip) };
}

function unusableSubnets(
  { subnets, unknown: unknownIds, elsewhere }: Choices,
  invalid: readonly string[],
  instance: NodeInstance | undefined,
): string {
  const ids = [...unknownIds, ...invalid];
  const missing = ids.length === 0 ? [] : [`named for this node, and not known to the cloud: ${joinLimited(ids)}`];
  // Without a known instance it is not known which subnets are elsewhere.
  const misplaced = instance === undefined ? [] : elsewhere.map((subnet) => misplacedSubnet(subnet, instance));
  const text = joinLimited([...missing, ...misplaced], '; ');
  const isNothingLeft = text !== '' && subnets.length === 0 && instance !== undefined;
  return isNothingLeft ? `${text}; no subnet is left: name subnets of zone ${instance.zone}, or none` : text;
}

function misplacedSubnet({ subnetId, vpcId, zone }: Choices['elsewhere'][number], instance: NodeInstance): string {
  const named = `named for this node: ${subnetId} is in`;
  return vpcId === instance.vpcId
    ? `${named} zone ${zone}, the node in ${instance.zone}`
    : `${named} ${vpcId}, the node in ${instance.vpcId}`;
}

function overdueText(ips: readonly string[]): string {
  return ips.length === 0
    ? ''
    : `loadBalancers.registeredIPs has ${joinLimited(ips)}, without a Pod for --load-balancer-wait: given back all the same`;
}

function problem(reason: IpamdEventReason, message: string): readonly NodeProblem[] {
  return message === '' ? [] : [{ reason, message }];
}

/** Says that another Node has the instance of a node. */
export function takenText(instanceId: string | undefined, rival: string | undefined): string {
  return `instance ${instanceId} is Node ${rival}; it gets no ENI. Delete the Node that does not exist any more, or correct its spec.providerID`;
}

function unknown(reason: IpamdEventReason, message: string, afterMs: number): UnknownFacts {
  return { kind: 'unknown', problem: { reason, message }, afterMs };
}
