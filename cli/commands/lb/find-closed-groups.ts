import type { IngressRule } from '../../../cloud/cloud.ts';
import type { Listener } from '../../../cloud/listeners.ts';
import type { LoadBalancer } from '../../../cloud/load-balancers.ts';
import type { Target } from '../../../cloud/targets.ts';
import { type Arrival, admitsSomebody, evaluateIngress, type GroupRules, PROBE_RANGE } from './evaluate-ingress.ts';
import type { GroupFacts } from './lb-facts.ts';

/** A load balancer, and a listener of it with its targets. */
type CheckedListener = {
  readonly balancer: LoadBalancer;
  readonly listener: Listener;
  readonly targets: readonly Target[];
  readonly groups: GroupFacts;
  /** Address of a client; undefined: of none in particular. */
  readonly client: string | undefined;
  /** The group that the controller makes of source ranges: what is added by hand it takes out. */
  readonly sourceGroupId?: string | undefined;
};

/** Who sends what groups are asked about. */
type Sender = { readonly name: string; readonly arrival: Arrival };

const MAX_NAMED = 3;

/**
 * Finds the security groups that keep probes or clients from a load balancer or its targets, each with the rule to add. Groups
 * of targets are not asked where the load balancer passes (`LoadBalancerPassToTarget`). What is not known is no fault.
 */
export function findClosedGroups(checked: CheckedListener): readonly string[] {
  const { balancer, listener, targets, groups, client, sourceGroupId } = checked;
  const service = serviceOf(listener, listener.port);
  if (service === undefined) return [];
  const place = `${service.protocol}/${service.port}`;
  const own = rulesOf(balancer.securityGroupIds, groups);
  const atBalancer =
    own === undefined
      ? []
      : gather(clientFaults(own, balancer.loadBalancerId, service, clientsOf(client, service), sourceGroupId));
  const ofTargets = balancer.passesToTarget
    ? []
    : targets.flatMap((target) => checkTarget(target, listener, balancer, groups, client));
  return [...atBalancer, ...gather(ofTargets)].map((text) => `${place}: ${text}`);
}

/** Whether the security groups of a target keep the probes of a listener from it; undefined: that is not known. */
export function dropsProbes(
  target: Target,
  listener: Listener,
  balancer: LoadBalancer,
  groups: GroupFacts,
): string | undefined {
  if (balancer.passesToTarget) return '';
  const holder = holderOf(target, groups);
  const rules = holder === undefined ? undefined : rulesOf(holder.groupIds, groups);
  const probe = probeOf(target, listener, balancer);
  if (rules === undefined || probe === undefined) return undefined;
  const answer = evaluateIngress(rules, probe.arrival);
  if (answer.kind === 'unknown') return undefined;
  return answer.kind === 'dropped' ? answer.groupId : '';
}

type Fault = { readonly holder: string; readonly before: string; readonly after: string };

function checkTarget(
  target: Target,
  listener: Listener,
  balancer: LoadBalancer,
  groups: GroupFacts,
  client: string | undefined,
): readonly Fault[] {
  const holder = holderOf(target, groups);
  const rules = holder === undefined ? undefined : rulesOf(holder.groupIds, groups);
  const service = serviceOf(listener, target.port);
  if (holder === undefined || rules === undefined || service === undefined) return [];
  const probe = probeOf(target, listener, balancer);
  return [
    ...(probe === undefined ? [] : faultsOf(rules, holder.name, probe)),
    ...clientFaults(rules, holder.name, service, clientsOf(client, service)),
  ];
}

function clientFaults(
  rules: readonly GroupRules[],
  holder: string,
  service: Pick<Arrival, 'protocol' | 'port'>,
  clients: Sender | undefined,
  sourceGroupId?: string,
): readonly Fault[] {
  if (clients !== undefined) return faultsOf(rules, holder, clients, sourceGroupId);
  if (admitsSomebody(rules, service)) return [];
  const [first] = rules;
  const groupId = first?.groupId ?? '';
  const after = `admits no client to ${service.protocol} ${service.port}; ${cure(groupId, service, 'the networks of the clients')}`;
  return [{ holder, before: groupId, after }];
}

function faultsOf(
  rules: readonly GroupRules[],
  holder: string,
  { name, arrival }: Sender,
  sourceGroupId?: string,
): readonly Fault[] {
  const answer = evaluateIngress(rules, arrival);
  if (answer.kind !== 'dropped') return [];
  const { groupId, at } = answer;
  const by = at === undefined ? '' : `, before its rule ${at + 1}, which drops it`;
  const after = `does not admit ${name} to ${arrival.protocol} ${arrival.port}; ${groupId === sourceGroupId ? `add ${arrival.cidr} to the source ranges of the Service` : cure(groupId, arrival, arrival.cidr)}${by}`;
  return [{ holder, before: groupId, after }];
}

function cure(groupId: string, { protocol, port }: Pick<Arrival, 'protocol' | 'port'>, from: string): string {
  return `add to ${groupId}: inbound ACCEPT ${protocol}:${port} from ${from}`;
}

/** One line for what is the same of several ENIs. */
function gather(faults: readonly Fault[]): readonly string[] {
  const same = Map.groupBy(faults, ({ before, after }) => `${before} ${after}`);
  return [...same.values()].map((all) => {
    const holders = [...new Set(all.map(({ holder }) => holder))];
    const more = holders.length > MAX_NAMED ? ` and ${holders.length - MAX_NAMED} more` : '';
    const [fault] = all;
    return `security group ${fault?.before} of ${holders.slice(0, MAX_NAMED).join(', ')}${more} ${fault?.after}`;
  });
}

/** What a listener takes, or a target of it; undefined for a listener of layer 7. */
function serviceOf({ protocol }: Listener, port: number): Pick<Arrival, 'protocol' | 'port'> | undefined {
  return protocol === 'TCP' || protocol === 'UDP' ? { protocol, port } : undefined;
}

function clientsOf(client: string | undefined, service: Pick<Arrival, 'protocol' | 'port'>): Sender | undefined {
  return client === undefined
    ? undefined
    : { name: `the client ${client}`, arrival: { ...service, cidr: `${client}/32` } };
}

/** What checks a target; undefined: nothing does, or by a packet that has no port. */
function probeOf(
  { port }: Target,
  { protocol, healthCheck = {} }: Listener,
  { vips }: LoadBalancer,
): Sender | undefined {
  const { isOn, kind, checkPort, source } = healthCheck;
  if (isOn === false || kind === 'PING') return undefined;
  const [vip] = vips;
  if (source === 'vip' && vip === undefined) return undefined;
  const cidr = source === 'vip' ? `${vip}/32` : PROBE_RANGE;
  const isUdp = protocol === 'UDP' && kind !== 'HTTP' && kind !== 'TCP';
  const checked = typeof checkPort === 'number' ? checkPort : port;
  return { name: `the health checks from ${cidr}`, arrival: { cidr, protocol: isUdp ? 'UDP' : 'TCP', port: checked } };
}

function holderOf({ eniId, instanceId, ip }: Target, groups: GroupFacts) {
  const eni = eniId === undefined ? undefined : groups.ofEni.get(eniId);
  if (eni !== undefined && eniId !== undefined) return { name: eniId, groupIds: eni };
  const id = instanceId ?? groups.instanceOf.get(ip);
  const groupIds = id === undefined ? undefined : groups.ofInstance.get(id);
  return groupIds === undefined || id === undefined ? undefined : { name: id, groupIds };
}

function rulesOf(groupIds: readonly string[], groups: GroupFacts): readonly GroupRules[] | undefined {
  const found = groupIds.map((groupId) => ({ groupId, rules: groups.rules.get(groupId) }));
  const isKnown = (one: (typeof found)[number]): one is { groupId: string; rules: readonly IngressRule[] } =>
    one.rules !== undefined;
  return found.every(isKnown) ? found : undefined;
}
