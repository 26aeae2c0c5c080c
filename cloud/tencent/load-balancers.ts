import type { Clock } from '../../runtime/clock.ts';
import { IDS_PER_CALL } from '../batches.ts';
import type { CallContext } from '../cloud.ts';
import { isCloudError } from '../cloud-error.ts';
import type {
  LoadBalancer,
  LoadBalancerChanges,
  LoadBalancerOutcome,
  LoadBalancerPort,
  LoadBalancerQuery,
  LoadBalancerSpec,
  LoadBalancerTask,
} from '../load-balancers.ts';
import { type Caller, DEFAULT_TIMEOUT_MS } from './caller.ts';
import {
  decodeAccepted,
  decodeLoadBalancerPage,
  decodeLoadBalancerQuotas,
  decodeLoadBalancerTask,
} from './decode/load-balancer.ts';
import { tokenOf } from './enis.ts';
import { GATHER_MS, IdBatcher } from './id-batcher.ts';
import { readPages } from './paged.ts';
import { requireCount } from './require-count.ts';

/** Most ids in one describe call of this product. */
const LOAD_BALANCERS_PER_CALL = 20;
/** Most security groups of one load balancer. */
const MAX_GROUPS = 50;
/** While calls of an owner wait, its describes of more load balancers are one: each of them costs a twentieth of a second. */
const BUSY_GATHER_MS = 500;
/**
 * Least and most time between two polls of one task. All polls together may take 20 calls a second, so that a task is
 * asked for by its age: most end within two seconds, a creation or deletion takes ten. While calls of its owner wait the first
 * poll is later, so that most tasks take one.
 */
const POLL_MS = { idleMin: 1_000, busyMin: 2_000, max: 4_000 } as const;
/** How many times the cloud must not know a task before it counts as lost. */
const UNKNOWN_ANSWERS = 3;
/** Oldest first: what is created meanwhile comes last, and moves nothing to another page. */
const BY_CREATION = { OrderBy: 'CreateTime', OrderType: 0 } as const;

/** Creates the load balancer part of the port. `isBusyFor` says whether calls of an owner wait for their turn. */
export function createLoadBalancerPort(
  clock: Clock,
  call: Caller,
  isBusyFor: (owner: string) => boolean,
): LoadBalancerPort {
  const batcher = new IdBatcher<LoadBalancer>(
    clock,
    ({ loadBalancerId }) => [loadBalancerId],
    async (ids, context) => {
      const request = { LoadBalancerIds: [...ids], Limit: LOAD_BALANCERS_PER_CALL };
      return decodeLoadBalancerPage(await call('DescribeLoadBalancers', request, context)).objects;
    },
    LOAD_BALANCERS_PER_CALL,
    ({ owner }) => (isBusyFor(owner) ? BUSY_GATHER_MS : GATHER_MS),
  );
  return {
    create: async (spec, context) => {
      const action = 'CreateLoadBalancer';
      // The ids in the answer are null as a rule: those of the task are valid always.
      return decodeAccepted(await call(action, createRequest(spec), context), action);
    },
    find: async (query, context) => {
      const request = { ...findRequest(query), ...BY_CREATION, Limit: IDS_PER_CALL };
      const readPage = async (Offset: number) =>
        decodeLoadBalancerPage(await call('DescribeLoadBalancers', { ...request, Offset }, context));
      const { objects, isConsistent } = await readPages(readPage, (one) => one.loadBalancerId);
      // The API also finds names that contain the given one.
      const loadBalancers = objects.filter(({ name }) => query.name === undefined || name === query.name);
      return { loadBalancers, isConsistent };
    },
    describe: (loadBalancerIds, context) => batcher.get(loadBalancerIds, context),
    modify: async (loadBalancerId, changes, context) => {
      const action = 'ModifyLoadBalancerAttributes';
      const request = { LoadBalancerId: loadBalancerId, ...changesRequest(changes) };
      return decodeAccepted(await call(action, request, context), action);
    },
    setSecurityGroups: async (loadBalancerId, securityGroupIds, context) => {
      const action = 'SetLoadBalancerSecurityGroups';
      if (securityGroupIds.length > 0) requireCount(action, 'security groups', securityGroupIds.length, MAX_GROUPS);
      await call(action, { LoadBalancerId: loadBalancerId, SecurityGroups: [...securityGroupIds] }, context);
    },
    delete: async (loadBalancerId, context) => {
      const action = 'DeleteLoadBalancer';
      return decodeAccepted(await call(action, { LoadBalancerIds: [loadBalancerId] }, context), action);
    },
    quotas: async (context) => decodeLoadBalancerQuotas(await call('DescribeQuota', {}, context)),
    settle: async (task, context) => {
      const startMs = clock.monotonicMs();
      const endMs = startMs + (context.timeoutMs ?? DEFAULT_TIMEOUT_MS);
      let unknownAnswers = 0;
      while (clock.monotonicMs() < endMs) {
        const minMs = isBusyFor(context.owner) ? POLL_MS.busyMin : POLL_MS.idleMin;
        const pollMs = Math.min(POLL_MS.max, Math.max(minMs, (clock.monotonicMs() - startMs) / 2));
        await clock.sleep(Math.max(1, Math.min(pollMs, endMs - clock.monotonicMs())), context.signal);
        const timeoutMs = Math.max(1, endMs - clock.monotonicMs());
        const answer = await queryTask(call, task, { ...context, timeoutMs });
        unknownAnswers = answer.kind === 'lost' ? unknownAnswers + 1 : 0;
        if (answer.kind === 'done' || answer.kind === 'failed' || unknownAnswers >= UNKNOWN_ANSWERS) return answer;
      }
      return { kind: 'pending' };
    },
  };
}

async function queryTask(call: Caller, task: LoadBalancerTask, context: CallContext): Promise<LoadBalancerOutcome> {
  const { taskId, dealName } = task;
  const byId = await queryOnce(call, { TaskId: taskId }, context);
  // A creation that was repeated with its token may be known by its order alone.
  return byId.kind === 'lost' && dealName !== undefined ? await queryOnce(call, { DealName: dealName }, context) : byId;
}

async function queryOnce(
  call: Caller,
  request: { readonly TaskId: string } | { readonly DealName: string },
  context: CallContext,
): Promise<LoadBalancerOutcome> {
  try {
    return decodeLoadBalancerTask(await call('DescribeTaskStatus', request, context));
  } catch (error) {
    if (isCloudError(error, 'gone')) return { kind: 'lost' };
    if (isCloudError(error, 'backoff', 'throttled', 'resolve', 'busy')) return { kind: 'pending' };
    throw error;
  }
}

function createRequest(spec: LoadBalancerSpec) {
  const { subnetId, tags, vip, bandwidthPackageId, isp, zone, masterZone, backupZone, slaType } = spec;
  const internet = internetOf(spec);
  return {
    LoadBalancerType: spec.type,
    LoadBalancerName: spec.name,
    VpcId: spec.vpcId,
    ...(subnetId === undefined ? {} : { SubnetId: subnetId }),
    ...(tags === undefined ? {} : { Tags: Object.entries(tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue })) }),
    ...(vip === undefined ? {} : { Vip: vip }),
    ...(internet === undefined ? {} : { InternetAccessible: internet }),
    ...(bandwidthPackageId === undefined ? {} : { BandwidthPackageId: bandwidthPackageId }),
    ...(isp === undefined ? {} : { VipIsp: isp }),
    ...(zone === undefined ? {} : { ZoneId: zone }),
    ...(masterZone === undefined ? {} : { MasterZoneId: masterZone }),
    ...(backupZone === undefined ? {} : { SlaveZoneId: backupZone }),
    ...(slaType === undefined ? {} : { SlaType: slaType }),
    ...switchesOf(spec),
    ...tokenOf(spec.clientToken),
  };
}

function changesRequest(changes: LoadBalancerChanges) {
  const { name, isDeleteProtected } = changes;
  const internet = internetOf(changes);
  return {
    ...(name === undefined ? {} : { LoadBalancerName: name }),
    ...(internet === undefined ? {} : { InternetChargeInfo: internet }),
    ...(isDeleteProtected === undefined ? {} : { DeleteProtect: isDeleteProtected }),
    ...switchesOf(changes),
  };
}

function internetOf({ chargeType, bandwidthMbps }: LoadBalancerChanges) {
  if (chargeType === undefined && bandwidthMbps === undefined) return undefined;
  return {
    ...(chargeType === undefined ? {} : { InternetChargeType: chargeType }),
    ...(bandwidthMbps === undefined ? {} : { InternetMaxBandwidthOut: bandwidthMbps }),
  };
}

function switchesOf({ passesToTarget, isSnatPro }: LoadBalancerChanges) {
  return {
    ...(passesToTarget === undefined ? {} : { LoadBalancerPassToTarget: passesToTarget }),
    ...(isSnatPro === undefined ? {} : { SnatPro: isSnatPro }),
  };
}

function findRequest({ vpcId, tag, name }: LoadBalancerQuery) {
  return {
    ...(vpcId === undefined ? {} : { VpcId: vpcId }),
    ...(tag === undefined ? {} : { Filters: [{ Name: `tag:${tag.key}`, Values: [tag.value] }] }),
    ...(name === undefined ? {} : { LoadBalancerName: name }),
  };
}
