import { IDS_PER_CALL } from '../batches.ts';
import type { CloudTask, Eni, EniGoal, EniPort, EniQuery, EniSpec, EniSweep } from '../cloud.ts';
import type { EniQuotaPort } from '../eni-quotas.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedEni, decodeEniPage } from './decode/eni.ts';
import { decodeRequestId, decodeVpcLimit } from './decode/others.ts';
import type { IdBatcher } from './id-batcher.ts';
import { readPages } from './paged.ts';
import type { SharedSweep } from './shared-sweep.ts';

/** Dependencies of the ENI part. */
type EniDeps = {
  readonly call: Caller;
  readonly eniBatcher: IdBatcher<Eni>;
  readonly eniSweeps: SharedSweep<EniSweep>;
};

/** Creates the ENI part of the port. */
export function createEniPort({ call, eniBatcher, eniSweeps }: EniDeps): EniPort {
  return {
    // An id that people wrote into an object may be malformed. No ENI has it, and the cloud would refuse the request.
    describe: (eniIds, context) => eniBatcher.get(eniIds.filter(isEniId), context),
    sweep: (query, context) => {
      const filters = filtersOf(query);
      return eniSweeps.join(JSON.stringify(filters), context, async (shared) => {
        const readPage = async (Offset: number) =>
          decodeEniPage(
            await call('DescribeNetworkInterfaces', { Filters: filters, Offset, Limit: IDS_PER_CALL }, shared),
          );
        const { objects, isConsistent } = await readPages(readPage, (eni) => eni.eniId);
        return { enis: objects, isConsistent };
      });
    },
    create: async (spec, context) => {
      const answer = await call('CreateNetworkInterface', createRequest(spec), context);
      const { eni, taskId } = decodeCreatedEni(answer);
      const ips = eni.ips.filter(({ isPrimary }) => !isPrimary).map(({ ip }) => ip);
      const goal = { kind: 'created', eniId: eni.eniId, ips } as const;
      return { eni, task: { taskId, action: 'CreateNetworkInterface', goal } };
    },
    attach: async (eniId, instanceId, context, { clientToken, isExtension = false } = {}) => {
      // A standard place is asked for as ever, by naming none.
      const place = isExtension ? { AttachType: 1 } : {};
      const request = { NetworkInterfaceId: eniId, InstanceId: instanceId, ...place, ...tokenOf(clientToken) };
      const answer = await call('AttachNetworkInterface', request, context);
      return vpcTask(answer, 'AttachNetworkInterface', { kind: 'attached', eniId, instanceId });
    },
    detach: async (eniId, instanceId, context, clientToken) => {
      const request = { NetworkInterfaceId: eniId, InstanceId: instanceId, ...tokenOf(clientToken) };
      const answer = await call('DetachNetworkInterface', request, context);
      return vpcTask(answer, 'DetachNetworkInterface', { kind: 'detached', eniId });
    },
    delete: async (eniId, context) => {
      const answer = await call('DeleteNetworkInterface', { NetworkInterfaceId: eniId }, context);
      return vpcTask(answer, 'DeleteNetworkInterface', { kind: 'deleted', eniId });
    },
  };
}

function isEniId(text: string): boolean {
  return /^eni-[a-zA-Z0-9]+$/.test(text);
}

/** Builds the task of an accepted call. @throws CloudError BAD_ANSWER when the answer has no RequestId */
export function vpcTask(answer: unknown, action: string, goal: EniGoal): CloudTask {
  return { taskId: decodeRequestId(answer, action), action, goal };
}

/** Returns the ClientToken field of a request; empty when there is no token. */
export function tokenOf(clientToken: string | undefined): { readonly ClientToken?: string } {
  return clientToken === undefined ? {} : { ClientToken: clientToken };
}

function createRequest(spec: EniSpec) {
  const { description, securityGroupIds, ipCount, tags } = spec;
  return {
    VpcId: spec.vpcId,
    SubnetId: spec.subnetId,
    NetworkInterfaceName: spec.name,
    ...(description === undefined ? {} : { NetworkInterfaceDescription: description }),
    ...(securityGroupIds === undefined ? {} : { SecurityGroupIds: [...securityGroupIds] }),
    ...(ipCount === undefined || ipCount === 0 ? {} : { SecondaryPrivateIpAddressCount: ipCount }),
    ...(tags === undefined ? {} : { Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })) }),
    ...tokenOf(spec.clientToken),
  };
}

function filtersOf(query: EniQuery): { Name: string; Values: string[] }[] {
  const filters: { Name: string; Values: string[] }[] = [];
  const add = (name: string, value: string | undefined): void => {
    if (value !== undefined) filters.push({ Name: name, Values: [value] });
  };
  add('vpc-id', query.vpcId);
  add('subnet-id', query.subnetId);
  add('attachment.instance-id', query.instanceId);
  add('network-interface-name', query.name);
  if (query.tag !== undefined) add(`tag:${query.tag.key}`, query.tag.value);
  return filters;
}

const MAX_ENIS = 'vpc-max-enis';

/** Creates the part of the port for quotas of ENIs. */
export function createEniQuotaPort(call: Caller): EniQuotaPort {
  return {
    ofVpc: async (vpcId, context) => {
      const limit = decodeVpcLimit(await call('DescribeVpcLimits', { LimitTypes: [MAX_ENIS] }, context), MAX_ENIS);
      if (limit === undefined) return undefined;
      const Filters = [
        { Name: 'vpc-id', Values: [vpcId] },
        { Name: 'is-primary', Values: ['false'] },
      ];
      const page = decodeEniPage(await call('DescribeNetworkInterfaces', { Filters, Offset: 0, Limit: 1 }, context));
      return { limit, used: page.total };
    },
  };
}
