import { list, optional, record, required } from '../../../runtime/decode.ts';
import type { ReservedIp } from '../../reserved-ips.ts';
import { COUNT, decodeAnswer, NAME, TAGS, TEXT, tagsOf, withEmptyList } from './fields.ts';

const RESERVED = record(
  {
    ReserveIpId: required(NAME),
    VpcId: required(NAME),
    // The API's own examples lack it.
    SubnetId: optional(TEXT),
    ReserveIpAddress: required(NAME),
    ResourceId: optional(TEXT),
    State: optional(TEXT),
    Name: optional(TEXT),
    TagSet: optional(TAGS),
  },
  'ignore',
);
const PAGE = record({ ReserveIpAddressSet: required(list(RESERVED)), TotalCount: required(COUNT) }, 'ignore');
const CREATED = record({ ReserveIpAddressSet: required(list(RESERVED)) }, 'ignore');

/** Decodes the answer of DescribeReserveIpAddresses. @throws CloudError BAD_ANSWER */
export function decodeReservedPage(value: unknown): {
  readonly objects: readonly ReservedIp[];
  readonly total: number;
} {
  const page = decodeAnswer(PAGE, withEmptyList(value, 'ReserveIpAddressSet'), 'DescribeReserveIpAddresses');
  return { objects: page.ReserveIpAddressSet.map(reservedOf), total: page.TotalCount };
}

/** Decodes the answer of CreateReserveIpAddresses. @throws CloudError BAD_ANSWER */
export function decodeCreatedReservations(value: unknown): readonly ReservedIp[] {
  return decodeAnswer(CREATED, value, 'CreateReserveIpAddresses').ReserveIpAddressSet.map(reservedOf);
}

type WireReserved = {
  readonly ReserveIpId: string;
  readonly VpcId: string;
  readonly SubnetId?: string;
  readonly ReserveIpAddress: string;
  readonly ResourceId?: string;
  readonly State?: string;
  readonly Name?: string;
  readonly TagSet?: readonly { readonly Key: string; readonly Value?: string }[];
};

/** State of a reserved address that a resource has. */
const BOUND = 'Bind';

function reservedOf(wire: WireReserved): ReservedIp {
  const { ResourceId = '', State } = wire;
  const isBound = State === BOUND || (State === undefined && ResourceId !== '');
  return {
    reservationId: wire.ReserveIpId,
    vpcId: wire.VpcId,
    subnetId: wire.SubnetId ?? '',
    ip: wire.ReserveIpAddress,
    ...(isBound ? { boundTo: ResourceId } : {}),
    name: wire.Name ?? '',
    tags: tagsOf(wire.TagSet),
  };
}
