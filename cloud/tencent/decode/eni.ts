import { boolean, integer, list, optional, record, required } from '../../../runtime/decode.ts';
import type { Eni, EniIp, EniState } from '../../cloud.ts';
import { COUNT, canonicalIpv6, decodeAnswer, NAME, TAGS, TEXT, tagsOf, timeOf, withEmptyList } from './fields.ts';

const IP = record(
  {
    PrivateIpAddress: required(NAME),
    Primary: optional(boolean),
    State: optional(TEXT),
    AddressId: optional(TEXT),
    PublicIpAddress: optional(TEXT),
  },
  'ignore',
);

const IPV6 = record(
  {
    Address: required(NAME),
    Primary: optional(boolean),
    State: optional(TEXT),
  },
  'ignore',
);

const STATES: readonly EniState[] = ['PENDING', 'AVAILABLE', 'ATTACHING', 'DETACHING', 'DELETING'];
const IP_STATES: readonly EniIp['state'][] = ['PENDING', 'AVAILABLE', 'MIGRATING', 'DELETING'];

const ENI = record(
  {
    NetworkInterfaceId: required(NAME),
    NetworkInterfaceName: optional(TEXT),
    NetworkInterfaceDescription: optional(TEXT),
    SubnetId: required(NAME),
    VpcId: required(NAME),
    Zone: optional(TEXT),
    MacAddress: optional(TEXT),
    Primary: optional(boolean),
    State: optional(TEXT),
    GroupSet: optional(list(NAME)),
    PrivateIpAddressSet: optional(list(IP)),
    Ipv6AddressSet: optional(list(IPV6)),
    Attachment: optional(record({ InstanceId: optional(TEXT), DeviceIndex: optional(integer(0, 1_000)) }, 'ignore')),
    TagSet: optional(TAGS),
    CreatedTime: optional(TEXT),
    AttachType: optional(integer(0, 1_000)),
  },
  'ignore',
);

type WireEni = NonNullable<ReturnType<typeof ENI>>;
type WireIp = NonNullable<ReturnType<typeof IP>>;
type WireIpv6 = NonNullable<ReturnType<typeof IPV6>>;

const PAGE = record({ NetworkInterfaceSet: required(list(ENI)), TotalCount: required(COUNT) }, 'ignore');
const CREATED = record({ NetworkInterface: required(ENI), RequestId: required(NAME) }, 'ignore');
const ASSIGNED = record({ PrivateIpAddressSet: required(list(IP)), RequestId: required(NAME) }, 'ignore');
const ASSIGNED_IPV6 = record({ Ipv6AddressSet: required(list(IPV6)), RequestId: required(NAME) }, 'ignore');
const LIMIT = record(
  {
    EniQuantity: required(integer(1, 1_000)),
    EniPrivateIpAddressQuantity: required(integer(1, 1_000)),
    // Absent in an older answer.
    ExtendEniQuantity: optional(integer(0, 1_000)),
  },
  'ignore',
);

/** Decodes one page of DescribeNetworkInterfaces. @throws CloudError BAD_ANSWER */
export function decodeEniPage(value: unknown): { readonly objects: readonly Eni[]; readonly total: number } {
  const page = decodeAnswer(PAGE, withEmptyList(value, 'NetworkInterfaceSet'), 'DescribeNetworkInterfaces');
  return { objects: page.NetworkInterfaceSet.map(eniOf), total: page.TotalCount };
}

/** Decodes the answer of CreateNetworkInterface. @throws CloudError BAD_ANSWER */
export function decodeCreatedEni(value: unknown): { readonly eni: Eni; readonly taskId: string } {
  const created = decodeAnswer(CREATED, value, 'CreateNetworkInterface');
  return { eni: eniOf(created.NetworkInterface), taskId: created.RequestId };
}

/** Decodes the answer of AssignPrivateIpAddresses. @throws CloudError BAD_ANSWER */
export function decodeAssignedIps(value: unknown): { readonly ips: readonly string[]; readonly taskId: string } {
  const assigned = decodeAnswer(ASSIGNED, value, 'AssignPrivateIpAddresses');
  return { ips: assigned.PrivateIpAddressSet.map((ip) => ip.PrivateIpAddress), taskId: assigned.RequestId };
}

/** Decodes the answer of AssignIpv6Addresses. @throws CloudError BAD_ANSWER */
export function decodeAssignedIpv6s(value: unknown): { readonly ips: readonly string[]; readonly taskId: string } {
  const assigned = decodeAnswer(ASSIGNED_IPV6, value, 'AssignIpv6Addresses');
  return { ips: assigned.Ipv6AddressSet.map((ip) => canonicalIpv6(ip.Address)), taskId: assigned.RequestId };
}

/**
 * Decodes the answer of DescribeNetworkInterfaceLimit, whose counts include the primaries; `extensionEnis` has
 * none. @throws CloudError BAD_ANSWER
 */
export function decodeEniLimit(value: unknown): {
  readonly enis: number;
  readonly extensionEnis: number;
  readonly ipsPerEni: number;
} {
  const limit = decodeAnswer(LIMIT, value, 'DescribeNetworkInterfaceLimit');
  return {
    enis: limit.EniQuantity,
    extensionEnis: limit.ExtendEniQuantity ?? 0,
    ipsPerEni: limit.EniPrivateIpAddressQuantity,
  };
}

/**
 * An unknown state counts as a transition: callers wait for its end, and one unknown state does not invalidate the
 * sweep of a whole cluster.
 */
const UNKNOWN_STATE = 'PENDING';

function eniOf(wire: WireEni): Eni {
  const instanceId = wire.Attachment?.InstanceId ?? '';
  return {
    eniId: wire.NetworkInterfaceId,
    name: wire.NetworkInterfaceName ?? '',
    description: wire.NetworkInterfaceDescription ?? '',
    mac: (wire.MacAddress ?? '').toLowerCase(),
    vpcId: wire.VpcId,
    subnetId: wire.SubnetId,
    zone: wire.Zone ?? '',
    isPrimary: wire.Primary ?? false,
    state: STATES.find((state) => state === wire.State) ?? UNKNOWN_STATE,
    ...(instanceId === '' ? {} : { attachment: attachmentOf(wire, instanceId) }),
    ips: (wire.PrivateIpAddressSet ?? []).map(ipOf),
    ...((wire.Ipv6AddressSet ?? []).length === 0 ? {} : { ipv6s: (wire.Ipv6AddressSet ?? []).map(ipv6Of) }),
    securityGroupIds: wire.GroupSet ?? [],
    tags: tagsOf(wire.TagSet),
    createdAtMs: timeOf(wire.CreatedTime),
  };
}

function attachmentOf(
  { Attachment: one, AttachType: type }: WireEni,
  instanceId: string,
): NonNullable<Eni['attachment']> {
  const place = type === undefined ? {} : { isExtension: type === EXTENSION };
  return { instanceId, deviceIndex: one?.DeviceIndex ?? 0, ...place };
}

/** AttachType of a place of the extension type; 0 is a standard one. */
const EXTENSION = 1;

function ipOf(wire: WireIp): EniIp {
  return {
    ip: wire.PrivateIpAddress,
    isPrimary: wire.Primary ?? false,
    state: ipStateOf(wire.State),
    ...((wire.AddressId ?? '') === '' ? {} : { eipId: wire.AddressId ?? '' }),
    ...((wire.PublicIpAddress ?? '') === '' ? {} : { publicIp: wire.PublicIpAddress ?? '' }),
  };
}

/** Returns the state of an address. Older APIs omit it for addresses in use. */
function ipStateOf(state: string | undefined): EniIp['state'] {
  if (state === undefined) return 'AVAILABLE';
  return IP_STATES.find((known) => known === state) ?? UNKNOWN_STATE;
}

function ipv6Of(wire: WireIpv6): EniIp {
  return { ip: canonicalIpv6(wire.Address), isPrimary: wire.Primary ?? false, state: ipStateOf(wire.State) };
}
