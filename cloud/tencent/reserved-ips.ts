import { IDS_PER_CALL } from '../batches.ts';
import { classifyError } from '../classify-error.ts';
import type { ReservationQuery, ReservationSpec, ReservedIpPort } from '../reserved-ips.ts';
import type { Caller } from './caller.ts';
import { decodeCreatedReservations, decodeReservedPage } from './decode/reserved-ip.ts';
import { readPages } from './paged.ts';

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
