import { batchesOf, countsOf, IDS_PER_CALL, IPS_PER_CALL } from '../batches.ts';
import { classifyError } from '../classify-error.ts';
import type { CloudTask, IpChange, IpPort } from '../cloud.ts';
import { type CloudError, isCloudError } from '../cloud-error.ts';
import type { ReservationQuery, ReservationSpec, ReservedIpPort } from '../reserved-ips.ts';
import type { Caller } from './caller.ts';
import { decodeAssignedIps, decodeAssignedIpv6s } from './decode/eni.ts';
import { decodeRequestId } from './decode/others.ts';
import { decodeCreatedReservations, decodeReservedPage } from './decode/reserved-ip.ts';
import { tokenOf, vpcTask } from './enis.ts';
import { readPages } from './paged.ts';

/** Creates the address part of the port. */
export function createIpPort(call: Caller): IpPort {
  return {
    assign: (eniId, count, context, clientToken) =>
      inSteps(countsOf(count, IPS_PER_CALL), async (step, index) => {
        const token = tokenOf(numbered(clientToken, index));
        const request = { NetworkInterfaceId: eniId, SecondaryPrivateIpAddressCount: step, ...token };
        return assigned(eniId, await call('AssignPrivateIpAddresses', request, context));
      }),
    assignExact: (eniId, ips, context, clientToken) =>
      inSteps(batchesOf(ips, IPS_PER_CALL), async (step, index) => {
        const PrivateIpAddresses = step.map((PrivateIpAddress) => ({ PrivateIpAddress }));
        const request = { NetworkInterfaceId: eniId, PrivateIpAddresses, ...tokenOf(numbered(clientToken, index)) };
        return assigned(eniId, await call('AssignPrivateIpAddresses', request, context));
      }),
    unassign: (eniId, ips, context) =>
      inSteps(batchesOf(ips, IPS_PER_CALL), async (step) => {
        const PrivateIpAddresses = step.map((PrivateIpAddress) => ({ PrivateIpAddress }));
        const action = 'UnassignPrivateIpAddresses';
        const answer = await call(action, { NetworkInterfaceId: eniId, PrivateIpAddresses }, context);
        return { ips: step, task: vpcTask(answer, action, { kind: 'ips-unassigned', eniId, ips: step }) };
      }),
    assignIpv6: (eniId, count, context, clientToken) =>
      inSteps(countsOf(count, IPS_PER_CALL), async (step, index) => {
        const action = 'AssignIpv6Addresses';
        const request = { NetworkInterfaceId: eniId, Ipv6AddressCount: step, ...tokenOf(numbered(clientToken, index)) };
        const { ips, taskId } = decodeAssignedIpv6s(await call(action, request, context));
        return { ips, task: { taskId, action, goal: { kind: 'ips-assigned', eniId, ips } } };
      }),
    unassignIpv6: (eniId, ips, context) =>
      inSteps(batchesOf(ips, IPS_PER_CALL), async (step) => {
        const action = 'UnassignIpv6Addresses';
        const Ipv6Addresses = step.map((Address) => ({ Address }));
        const answer = await call(action, { NetworkInterfaceId: eniId, Ipv6Addresses }, context);
        return { ips: step, task: vpcTask(answer, action, { kind: 'ips-unassigned', eniId, ips: step }) };
      }),
    migrate: async (ip, fromEniId, toEniId, context) => {
      const action = 'MigratePrivateIpAddress';
      const request = {
        SourceNetworkInterfaceId: fromEniId,
        DestinationNetworkInterfaceId: toEniId,
        PrivateIpAddress: ip,
      };
      const taskId = decodeRequestId(await call(action, request, context), action);
      return { taskId, action, goal: { kind: 'ips-assigned', eniId: toEniId, ips: [ip] } };
    },
  };
}

type Step = { readonly ips: readonly string[]; readonly task: CloudTask };

/** Runs one call after the other: an ENI accepts one change at a time. */
async function inSteps<T>(steps: readonly T[], run: (step: T, index: number) => Promise<Step>): Promise<IpChange> {
  const ips: string[] = [];
  const tasks: CloudTask[] = [];
  let failure: CloudError | undefined;
  for (const [index, step] of steps.entries()) {
    try {
      const done = await run(step, index);
      ips.push(...done.ips);
      tasks.push(done.task);
    } catch (error) {
      // The effects of earlier steps remain and must reach the caller. A failed first step had none.
      if (!isCloudError(error) || tasks.length === 0) throw error;
      failure = error;
      break;
    }
  }
  return { ips, tasks, ...(failure === undefined ? {} : { failure }) };
}

function assigned(eniId: string, answer: unknown): Step {
  const { ips, taskId } = decodeAssignedIps(answer);
  return { ips, task: { taskId, action: 'AssignPrivateIpAddresses', goal: { kind: 'ips-assigned', eniId, ips } } };
}

/**
 * Returns the token of a call. The first call has the token unchanged, so that a caller that assigns ten at most may
 * look for it.
 */
function numbered(clientToken: string | undefined, index: number): string | undefined {
  return clientToken === undefined || index === 0 ? clientToken : `${clientToken}.${index}`;
}

/** Creates the part of the port for reserved addresses. */
export function createReservedIpPort(call: Caller): ReservedIpPort {
  return {
    reserve: async (spec, context) => {
      const made = decodeCreatedReservations(await call('CreateReserveIpAddresses', createRequest(spec), context));
      const reserved = spec.ip === undefined ? made[0] : made.find(({ ip }) => ip === spec.ip);
      if (reserved !== undefined) return { ...reserved, subnetId: spec.subnetId };
      const text = `the answer lacks the reserved address ${spec.ip ?? `of ${spec.subnetId}`}`;
      throw classifyError({ code: 'BAD_ANSWER', action: 'CreateReserveIpAddresses', text });
    },
    find: async (vpcId, query, context) => {
      const Filters = [{ Name: 'vpc-id', Values: [vpcId] }, filterOf(query)];
      const readPage = async (Offset: number) =>
        decodeReservedPage(await call('DescribeReserveIpAddresses', { Filters, Offset, Limit: IDS_PER_CALL }, context));
      const { objects, isConsistent } = await readPages(readPage, (one) => one.reservationId);
      return { reservations: objects, isConsistent };
    },
    release: async (vpcId, reservationId, context) => {
      await call('DeleteReserveIpAddresses', { VpcId: vpcId, ReserveIpIds: [reservationId] }, context);
    },
  };
}

function createRequest({ vpcId, subnetId, ip, name, tags, clientToken }: ReservationSpec) {
  const Tags = Object.entries(tags ?? {}).map(([Key, Value]) => ({ Key, Value }));
  return {
    VpcId: vpcId,
    SubnetId: subnetId,
    ...(ip === undefined ? { IpAddressCount: 1 } : { IpAddresses: [ip] }),
    Name: name,
    ...(Tags.length === 0 ? {} : { Tags }),
    ClientToken: clientToken,
  };
}

function filterOf(query: ReservationQuery): { readonly Name: string; readonly Values: string[] } {
  if ('name' in query) return { Name: 'name', Values: [query.name] };
  if ('ip' in query) return { Name: 'reserve-address-ip', Values: [query.ip] };
  return { Name: `tag:${query.tag.key}`, Values: [query.tag.value] };
}
