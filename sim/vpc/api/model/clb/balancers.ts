import type {
  CreateLoadBalancerResponse,
  ModifyLoadBalancerAttributesResponse,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import { ApiError } from '../api-error.ts';
import type { ModelCall } from '../call.ts';
import type { Params } from '../params.ts';
import type { CloudState } from '../state.ts';
import type { ModelSubnet } from '../types.ts';
import { allTargets } from './layer7.ts';
import { requireBalancerQuota } from './quotas.ts';
import { changeLater } from './tasks.ts';
import type { ModelLoadBalancer } from './types.ts';

const MOST_TAGS = 20;
const MOST_GROUPS = 50;
const MOST_NAME = 80;
const FIVE_MINUTES_MS = 300_000;
/** Targets with which a deletion looks like a mistake. */
const RISKY_TARGETS = 20;
const CHARGE_TYPES = ['TRAFFIC_POSTPAID_BY_HOUR', 'BANDWIDTH_POSTPAID_BY_HOUR', 'BANDWIDTH_PACKAGE'];
const MOST_BANDWIDTH = 61_440;

/** Answers CreateLoadBalancer: the ids come with the end of the task, unless the account has them at once. */
export function createLoadBalancer(call: ModelCall): Partial<CreateLoadBalancerResponse> {
  const { state, params, begin } = call;
  const type = params.choice('LoadBalancerType', ['OPEN', 'INTERNAL'], 'OPEN');
  const subnet = subnetFor(state, params, type);
  requireSupported(params);
  const tags = readTags(params);
  const extras = readExtras(params, 'InternetAccessible');
  requireConsistent(type, extras);
  const count = params.integer('Number', 1, 1, 20);
  requireBalancerQuota(state.clb, type, count);
  const made = Array.from({ length: count }, (): ModelLoadBalancer => {
    const loadBalancerId = state.nextId('lb');
    const hasDomain = type === 'OPEN' && (state.clb.spec.hasOnlyDomains === true || params.flag('DynamicVip') === true);
    const balancer: ModelLoadBalancer = {
      loadBalancerId,
      name: freeName(state, params.text('LoadBalancerName', MOST_NAME), loadBalancerId),
      type,
      vpcId: params.text('VpcId'),
      ...(subnet === undefined ? {} : { subnetId: subnet.subnetId }),
      vip: takeVip(state, params, subnet),
      domain: hasDomain ? `${loadBalancerId}-0123456789abcdef.clb.gz-tencentclb.com` : '',
      tags,
      securityGroupIds: [],
      isDeleteProtected: false,
      passToTarget: params.flag('LoadBalancerPassToTarget') ?? false,
      snatPro: params.flag('SnatPro') ?? false,
      extras,
      state: 'CREATING',
      isOperating: true,
      createdAtMs: state.nowMs,
      listeners: new Map(),
    };
    state.clb.put(balancer, state.nowMs);
    return balancer;
  });
  const loadBalancerIds = made.map((balancer) => balancer.loadBalancerId);
  const dealName = `2026${String(state.serial('deal')).padStart(12, '0')}`;
  begin({ kind: 'clb', action: 'create', loadBalancerIds, dealName });
  const ids = state.clb.spec.answersIds === true ? loadBalancerIds : null;
  // The SDK's type leaves out what its comment says: null.
  return { LoadBalancerIds: ids as string[], DealName: dealName };
}

/** Answers ModifyLoadBalancerAttributes. */
export function modifyAttributes(call: ModelCall): Partial<ModifyLoadBalancerAttributesResponse> {
  const { state, params } = call;
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const name = params.text('LoadBalancerName', MOST_NAME);
  const extras = readExtras(params, 'InternetChargeInfo');
  const isDeleteProtected = params.flag('DeleteProtect');
  const passToTarget = params.flag('LoadBalancerPassToTarget');
  const snatPro = params.flag('SnatPro');
  changeLater(call, balancer, (before) => ({
    ...before,
    name: name === '' ? before.name : name,
    isDeleteProtected: isDeleteProtected ?? before.isDeleteProtected,
    passToTarget: passToTarget ?? before.passToTarget,
    snatPro: snatPro ?? before.snatPro,
    extras: { ...before.extras, ...extras },
  }));
  return { DealName: '' };
}

/** Answers SetLoadBalancerSecurityGroups: what is not named is unbound; none named: all are. */
export function setSecurityGroups({ state, params }: ModelCall): object {
  const balancer = state.clb.idleBalancer(params.text('LoadBalancerId'));
  const securityGroupIds = state.securityGroups.known(params.texts('SecurityGroups', MOST_GROUPS));
  state.clb.put({ ...balancer, securityGroupIds }, state.nowMs);
  return {};
}

/** Answers DeleteLoadBalancer: all of them, or none. Listeners and bindings go with a load balancer. */
export function deleteLoadBalancers({ state, params, begin }: ModelCall): object {
  const ids = params.texts('LoadBalancerIds', 20);
  if (ids.length === 0) throw new ApiError('InvalidParameterValue.Length', 'LoadBalancerIds is empty.');
  const isForced = params.flag('ForceDelete') ?? false;
  for (const id of ids) state.clb.balancer(id);
  const doomed = ids.map((id) => state.clb.idleBalancer(id));
  for (const balancer of doomed) requireDeletable(state, balancer, isForced);
  const recent = state.clb.deletedAtMs.filter((atMs) => atMs > state.nowMs - FIVE_MINUTES_MS);
  if (recent.length + ids.length >= state.clb.limits.deletions) {
    throw new ApiError('FailedOperation.FrequencyCheckRisk', 'Too many load balancers were deleted in five minutes.');
  }
  state.clb.deletedAtMs = [...recent, ...ids.map(() => state.nowMs)];
  for (const balancer of doomed) state.clb.put({ ...balancer, state: 'DELETING', isOperating: true }, state.nowMs);
  begin({ kind: 'clb', action: 'delete', loadBalancerIds: ids });
  return {};
}

function requireDeletable(state: CloudState, balancer: ModelLoadBalancer, isForced: boolean): void {
  const { loadBalancerId, isDeleteProtected, listeners } = balancer;
  if (isDeleteProtected) {
    throw new ApiError('OperationDenied', `The load balancer ${loadBalancerId} is protected from deletion.`);
  }
  if (isForced) return;
  const targets = [...listeners.values()].reduce((sum, listener) => sum + allTargets(listener).length, 0);
  if (targets >= RISKY_TARGETS) {
    throw new ApiError('FailedOperation.TargetNumCheckRisk', `${loadBalancerId} has ${targets} targets; force it.`);
  }
  const busyAtMs = state.clb.busyAtMs.get(loadBalancerId) ?? Number.NEGATIVE_INFINITY;
  if (busyAtMs <= state.nowMs - FIVE_MINUTES_MS) return;
  throw new ApiError('FailedOperation.TrafficCheckRisk', `${loadBalancerId} has traffic; force it.`);
}

function subnetFor(state: CloudState, params: Params, type: 'OPEN' | 'INTERNAL'): ModelSubnet | undefined {
  const vpcId = params.text('VpcId');
  if (vpcId !== state.spec.vpcId) throw new ApiError('InvalidParameterValue', `The VPC ${vpcId} does not exist.`);
  if ((type === 'INTERNAL') !== params.has('SubnetId')) {
    throw new ApiError('InvalidParameter.FormatError', 'SubnetId is needed for INTERNAL, and for nothing else.');
  }
  return params.has('SubnetId') ? state.subnet(params.text('SubnetId')) : undefined;
}

/** Refuses what the API has and the model has not. */
function requireSupported(params: Params): void {
  params.integer('Forward', 1, 1, 1);
  params.integer('ProjectId', 0, 0, Number.MAX_SAFE_INTEGER);
  const version = params.text('AddressIPVersion').toUpperCase();
  if (version !== '' && version !== 'IPV4') {
    throw new ApiError('UnsupportedOperation', `AddressIPVersion ${version} is not simulated.`);
  }
}

/** Zones are those of a public address; a package is for its own way of charging. */
function requireConsistent(type: 'OPEN' | 'INTERNAL', extras: ModelLoadBalancer['extras']): void {
  const hasZone = (extras.zoneId ?? extras.masterZoneId ?? extras.slaveZoneId) !== undefined;
  if (hasZone && type !== 'OPEN') throw new ApiError('InvalidParameterValue', 'Zones are for OPEN load balancers.');
  if (extras.bandwidthPackageId === undefined || extras.internetChargeType === 'BANDWIDTH_PACKAGE') return;
  throw new ApiError('InvalidParameterValue', 'BandwidthPackageId needs InternetChargeType BANDWIDTH_PACKAGE.');
}

function takeVip(state: CloudState, params: Params, subnet: ModelSubnet | undefined): string {
  const pool = subnet?.pool ?? state.clb.publicVips;
  if (!params.has('Vip')) return pool.take();
  if (subnet === undefined) throw new ApiError('InvalidParameterValue', 'Vip is for INTERNAL load balancers.');
  return pool.takeExact(params.text('Vip'));
}

/** A name that exists is silently replaced by another. */
function freeName(state: CloudState, wanted: string, loadBalancerId: string): string {
  const isTaken = [...state.clb.balancers().values()].some(({ name }) => name === wanted);
  return wanted === '' || isTaken ? `CLB-${loadBalancerId.slice('lb-'.length)}` : wanted;
}

function readTags(params: Params): Readonly<Record<string, string>> {
  const tags = params.parts('Tags', MOST_TAGS, ['TagKey'], ['TagValue']);
  const pairs = tags.map((tag) => [tag.text('TagKey', 127), tag.text('TagValue', 255)] as const);
  if (new Set(pairs.map(([key]) => key)).size < pairs.length) {
    throw new ApiError('InvalidParameterValue.Duplicate', 'Tags holds a key twice.');
  }
  if (pairs.some(([key]) => key === '')) throw new ApiError('InvalidParameterValue.Length', 'A TagKey is empty.');
  return Object.fromEntries(pairs);
}

function readExtras(params: Params, field: 'InternetAccessible' | 'InternetChargeInfo'): ModelLoadBalancer['extras'] {
  const internet = params.part(field, [], ['InternetChargeType', 'InternetMaxBandwidthOut', 'BandwidthpkgSubType']);
  const text = (name: string): string | undefined => (params.has(name) ? params.text(name) : undefined);
  const extras = {
    internetChargeType: internet?.has('InternetChargeType')
      ? internet.choice('InternetChargeType', CHARGE_TYPES, '')
      : undefined,
    internetMaxBandwidthOut: internet?.has('InternetMaxBandwidthOut')
      ? internet.integer('InternetMaxBandwidthOut', 10, 1, MOST_BANDWIDTH)
      : undefined,
    vipIsp: text('VipIsp'),
    masterZoneId: text('MasterZoneId'),
    slaveZoneId: text('SlaveZoneId'),
    zoneId: text('ZoneId'),
    bandwidthPackageId: text('BandwidthPackageId'),
    slaType: text('SlaType'),
  };
  return Object.fromEntries(Object.entries(extras).filter(([, value]) => value !== undefined));
}
