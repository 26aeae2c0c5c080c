import type { HealthCheck } from '../../../cloud/health-check.ts';
import type { Listener } from '../../../cloud/listeners.ts';
import type { HealthState, Target } from '../../../cloud/targets.ts';
import { readOwnerMark } from '../../../cloud-controller-manager/balancers/owner-mark.ts';
import { decideService } from '../../../cloud-controller-manager/services/decide-service.ts';
import { readServiceHead } from '../../../cloud-controller-manager/services/read-service.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import type { LbPlan } from './build-lb-plan.ts';
import { dropsProbes, findClosedGroups } from './find-closed-groups.ts';
import { findObservedService, type ObservedBalancer } from './find-observed.ts';
import { findOwners, type ServedOwner } from './find-owners.ts';
import type { GroupFacts, LbFacts } from './lb-facts.ts';

/** A target of a listener. `of`: `Pod NAMESPACE/NAME` or `Node NAME`; '' : nothing of the cluster has its address. */
export type TargetRow = {
  readonly ip: string;
  readonly port: number;
  readonly weight: number;
  readonly kind: string;
  readonly health: HealthState;
  readonly of: string;
  /** Node of the Pod, or the Node itself; '' : not known. */
  readonly node: string;
  readonly getsConnections: boolean;
  readonly reason: string;
};

/** A listener of a Service. */
type ListenerRow = {
  readonly listenerId: string;
  readonly protocol: string;
  readonly port: number;
  /** For people: `TCP`, `HTTP /healthz of port 31234`, `off`. */
  readonly check: string;
  readonly targets: readonly TargetRow[];
};

/**
 * A Service with its load balancer. `none`: it has none yet; `missing`: the one on record does not exist; `unknown`: the
 * cloud was not asked; `ignored`: this controller does not serve it.
 */
export type LbRow = {
  readonly service: string;
  readonly state: 'ready' | 'creating' | 'missing' | 'none' | 'unknown' | 'ignored';
  readonly loadBalancerId?: string;
  /** Whether it was made for the Service; otherwise it exists for others too. */
  readonly isOwn?: boolean;
  readonly type?: string;
  readonly addresses: readonly string[];
  readonly isDeleteProtected?: boolean;
  readonly securityGroupIds?: readonly string[];
  /** Whether its security groups alone decide who may connect; otherwise those of the targets have to admit clients too. */
  readonly passesToTarget?: boolean;
  /** Whether a restart of the controller would find it on record as it is. */
  readonly isSettled: boolean;
  readonly listeners: readonly ListenerRow[];
  /** What is wrong, a sentence each. */
  readonly problems: readonly string[];
  /** What the controller reports about the Service; absent: it was not planned, as something is not known. */
  readonly notices?: LbPlan['notices'];
  /** How many calls the controller would make now. */
  readonly plannedCalls?: number;
};

/**
 * Builds a row for each Service, in the order of their names.
 * @param client address of a client that security groups are asked about; undefined: none in particular
 */
export function buildLbRows(facts: LbFacts, client?: string): readonly LbRow[] {
  const owners = findOwners(facts);
  const rows = facts.services.map((object) => buildRow(object, facts, owners, client));
  return rows.toSorted((one, other) => compareTexts(one.service, other.service));
}

/** Adds to each row what the controller would do and report. */
export function addPlans(rows: readonly LbRow[], plans: readonly LbPlan[]): readonly LbRow[] {
  const byService = new Map(plans.map((plan) => [plan.service, plan]));
  return rows.map((row) => {
    const plan = byService.get(row.service);
    return plan === undefined ? row : { ...row, notices: plan.notices, plannedCalls: plan.steps.length };
  });
}

function buildRow(
  object: KubeObject,
  facts: LbFacts,
  owners: ReadonlyMap<string, ServedOwner>,
  client: string | undefined,
): LbRow {
  const head = readServiceHead(object);
  const mark = readOwnerMark(head);
  const shown = head.ingress.flatMap(({ ip, hostname }) => ip ?? hostname ?? []);
  const base = { service: head.key, addresses: shown, isSettled: mark.settled !== undefined, listeners: [] };
  if (decideService(head, facts.loadBalancerClass) === 'ignore')
    return { ...base, state: 'ignored', problems: [], isSettled: false };
  const cloud = ifKnown(facts.cloud);
  if (cloud === undefined) {
    const { loadBalancerId } = mark;
    return { ...base, state: 'unknown', ...(loadBalancerId === undefined ? {} : { loadBalancerId }), problems: [] };
  }
  const observed = findObservedService(object, facts.clusterId, cloud, ifKnown(facts.groups));
  if (observed === undefined) {
    const { loadBalancerId } = mark;
    if (loadBalancerId === undefined) return { ...base, state: 'none', problems: ['it has no load balancer'] };
    const problem = `${loadBalancerId} is on record and does not exist`;
    return { ...base, state: 'missing', loadBalancerId, problems: [problem] };
  }
  const { loadBalancerId, vips, domain, type, isNormal, isDeleteProtected } = observed.balancer;
  const { securityGroupIds, passesToTarget } = observed.balancer;
  const groups = ifKnown(facts.groups);
  const listeners = buildListeners(observed, owners, groups);
  return {
    ...base,
    state: isNormal ? 'ready' : 'creating',
    loadBalancerId,
    isOwn: observed.isOwn,
    type,
    addresses: vips.length > 0 ? vips : [domain].filter((one) => one !== ''),
    isDeleteProtected,
    securityGroupIds,
    passesToTarget,
    listeners,
    problems: isNormal ? [...findProblems(listeners), ...closedGroupsOf(observed, groups, client)] : [],
  };
}

function findProblems(listeners: readonly ListenerRow[]): readonly string[] {
  if (listeners.length === 0) return ['the load balancer has no listener of the Service'];
  return listeners.flatMap(({ protocol, port, targets }) => {
    const place = `${protocol}/${port}`;
    const stale = targets.filter(({ of }) => of === '').map(({ ip, port: at }) => `${ip}:${at}`);
    return [
      ...(targets.some(({ getsConnections }) => getsConnections) ? [] : [`${place}: no target gets connections`]),
      ...(stale.length === 0 ? [] : [`${place}: no Pod and no Node has ${stale.join(', ')}`]),
    ];
  });
}

function closedGroupsOf(
  { balancer, listeners, targets, listenerName, sourceGroup }: ObservedBalancer,
  groups: GroupFacts | undefined,
  client: string | undefined,
): readonly string[] {
  if (groups === undefined) return [];
  return listeners
    .filter(({ name }) => name === listenerName)
    .flatMap((listener) => {
      const its = targets.filter(({ listenerId }) => listenerId === listener.listenerId);
      const { securityGroupId: sourceGroupId } = sourceGroup ?? {};
      return findClosedGroups({ balancer, listener, targets: its, groups, client, sourceGroupId });
    });
}

function buildListeners(
  { balancer, listeners, targets, health, listenerName }: ObservedBalancer,
  owners: ReadonlyMap<string, ServedOwner>,
  groups: GroupFacts | undefined,
): readonly ListenerRow[] {
  const states = new Map(health.map((one) => [`${one.listenerId} ${one.ip}:${one.port}`, one.state]));
  const ofListener = Map.groupBy(targets, ({ listenerId }) => listenerId);
  return listeners
    .filter(({ name }) => name === listenerName)
    .toSorted((one, other) => one.port - other.port || compareTexts(one.protocol, other.protocol))
    .map((listener) => ({
      listenerId: listener.listenerId,
      protocol: listener.protocol,
      port: listener.port,
      check: checkText(listener.healthCheck),
      targets: (ofListener.get(listener.listenerId) ?? [])
        .map((target) => {
          const closed = groups === undefined ? undefined : dropsProbes(target, listener, balancer, groups);
          return buildTarget(target, states, owners, listener.healthCheck, closed);
        })
        .toSorted((one, other) => (`${one.of} ${one.ip}` < `${other.of} ${other.ip}` ? -1 : 1)),
    }));
}

function buildTarget(
  { listenerId, ip, port, weight, kind }: Target,
  states: ReadonlyMap<string, HealthState>,
  owners: ReadonlyMap<string, ServedOwner>,
  check: Listener['healthCheck'],
  closed: string | undefined,
): TargetRow {
  const health = check?.isOn === false ? 'unchecked' : (states.get(`${listenerId} ${ip}:${port}`) ?? 'unknown');
  const owner = owners.get(ip) ?? { of: '', node: '' };
  const getsConnections = weight > 0 && (health === 'healthy' || health === 'unchecked');
  return {
    ip,
    port,
    weight,
    kind,
    health,
    ...owner,
    getsConnections,
    reason: reasonOf(weight, health, owner.of, closed),
  };
}

/** @param closed the security group that drops the checks; '' : none does; undefined: not known */
function reasonOf(weight: number, health: HealthState, of: string, closed: string | undefined): string {
  if (of === '') return 'no Pod and no Node has this address: who gets it next would get these packets';
  if (weight === 0) return 'weight 0: it drains, as it is leaving, not ready, or no backend any more';
  if (health === 'unhealthy' && closed === undefined)
    return 'its check fails: it does not answer, or a security group does not admit 100.64.0.0/10';
  if (health === 'unhealthy')
    return closed === '' ? 'its check fails: it does not answer' : `its check fails: ${closed} does not admit it`;
  if (health === 'unknown') return 'it is not checked yet';
  return health === 'unchecked' ? 'it gets connections, and is not checked' : 'it gets connections';
}

function checkText(check: HealthCheck = {}): string {
  const { isOn, kind = 'TCP', checkPort, http } = check;
  if (isOn === false) return 'off';
  const path = kind !== 'HTTP' || http?.path === undefined ? '' : ` ${http.path}`;
  return typeof checkPort === 'number' ? `${kind}${path} of port ${checkPort}` : `${kind}${path}`;
}

/** Says which security groups have to admit a client of a load balancer. */
export function admissionText({ securityGroupIds = [], passesToTarget = false }: LbRow): string {
  const groups = securityGroupIds.length === 0 ? 'has no security group' : `admits by ${securityGroupIds.join(', ')}`;
  const others = passesToTarget
    ? 'and nothing else filters the client'
    : 'and the security groups of node or ENI have to admit the client too';
  return `${groups}, ${others}`;
}
