import type { Family } from '../../dataplane/ip-prefix.ts';
import {
  boolean,
  type Decoder,
  decodeOrThrow,
  integer,
  list,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../runtime/decode.ts';
import type { Cooldown, EniRecord, Offer, RecordedPod } from './journal-content.ts';
import type { Lease } from './lease.ts';
import type { Supply } from './supply.ts';

// Rows are JSON. They were written by an agent of the same schema version, maybe a newer release: unknown fields are
// ignored. A row that does not decode shows that the file is damaged.

const family: Decoder<Family> = (value, path, faults) => {
  if (value === 4 || value === 6) return value;
  faults.add(path, '4 or 6', value);
  return undefined;
};
const isTrue: Decoder<true> = (value, path, faults) => {
  if (value === true) return true;
  faults.add(path, 'true', value);
  return undefined;
};
const someText = required(text());
const someTimeMs = required(integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER));

const leasedAddress = record(
  { ip: someText, family: required(family), eniId: someText, assignmentId: someText },
  'ignore',
);

const primaryAddresses = list(
  record({ ip: someText, family: required(family), gateway: someText, subnetCidr: someText }, 'ignore'),
);
const leasedNic = record(
  {
    ...{ mac: someText, hostName: someText, sideMac: someText },
    mtu: required(integer(0, 0xffff_ffff)),
    primary: required(primaryAddresses),
  },
  'ignore',
);

const lease: Decoder<Lease> = record(
  {
    containerId: someText,
    ifName: someText,
    network: someText,
    plugin: required(oneOf(['route-eni', 'ipam', 'direct-eni', 'bridge'])),
    netns: someText,
    podNamespace: someText,
    podName: someText,
    podUid: someText,
    addresses: required(list(leasedAddress)),
    eniId: someText,
    state: required(oneOf(['pending', 'active', 'releasing'])),
    hostVeth: optional(record({ name: someText, mac: someText, ifindex: optional(integer(1, 0x7fff_ffff)) }, 'ignore')),
    podMac: optional(text()),
    nic: optional(leasedNic),
    uplink: optional(isTrue),
    block: optional(record({ cidr: someText, wiring: required(oneOf(['bridge', 'routed'])) }, 'ignore')),
    mtu: required(integer(0, 0xffff_ffff)),
    createdAtMs: someTimeMs,
  },
  'ignore',
);

const cooldown: Decoder<Cooldown> = record(
  {
    ip: someText,
    family: required(family),
    eniId: someText,
    assignmentId: someText,
    freedAtMs: someTimeMs,
    coolUntilMs: someTimeMs,
    cooldownMs: required(integer(0, Number.MAX_SAFE_INTEGER)),
    isWholeEni: optional(isTrue),
  },
  'ignore',
);

const offer: Decoder<Offer> = record(
  {
    ...{ ip: someText, family: required(family), eniId: someText, assignmentId: someText },
    isWholeEni: optional(isTrue),
  },
  'ignore',
);

const eniRecord: Decoder<EniRecord> = record(
  { eniId: someText, mac: someText, table: required(integer(1, 0xffff_ffff)), slot: required(integer(1, 255)) },
  'ignore',
);

const claim = record({ namespace: someText, name: someText, uid: optional(text()) }, 'ignore');

const supplyAddress = record(
  {
    ip: someText,
    family: required(family),
    assignmentId: someText,
    state: required(oneOf(['assigned', 'releasing'])),
    pairedIp: optional(text()),
    claim: optional(claim),
  },
  'ignore',
);

const supplyEni = record(
  {
    eniId: someText,
    mac: someText,
    primary: required(primaryAddresses),
    deviceIndex: optional(integer(0, 255)),
    attached: required(boolean),
    draining: required(boolean),
    addresses: required(list(supplyAddress)),
  },
  'ignore',
);

const wholeCount = integer(0, Number.MAX_SAFE_INTEGER);
const exclusiveSupply = record(
  {
    enis: required(
      list(
        record(
          {
            ...{ eniId: someText, mac: someText, assignmentId: someText },
            primary: required(primaryAddresses),
            state: required(oneOf(['attaching', 'attached', 'detaching'])),
            draining: required(boolean),
            claim: optional(claim),
          },
          'ignore',
        ),
      ),
    ),
    warm: required(
      record(
        {
          min: required(wholeCount),
          max: required(wholeCount),
          limit: optional(wholeCount),
          awaited: optional(wholeCount),
        },
        'ignore',
      ),
    ),
  },
  'ignore',
);
const supply: Decoder<Supply> = record(
  {
    nodeName: someText,
    epoch: required(wholeCount),
    enis: required(list(supplyEni)),
    warm: required(
      record(
        {
          min: required(wholeCount),
          max: required(wholeCount),
          limit: optional(wholeCount),
          isQuickRelease: optional(boolean),
          floor: optional(wholeCount),
          keptPlaces: optional(wholeCount),
        },
        'ignore',
      ),
    ),
    allocatable: optional(wholeCount),
    maxEips: optional(wholeCount),
    direct: optional(exclusiveSupply),
    isStaticIpEnabled: optional(isTrue),
    takenOver: optional(list(record({ ip: someText, leaseKey: someText }, 'ignore'))),
    registeredIps: optional(list(text())),
  },
  'ignore',
);

const recordedPods: Decoder<readonly RecordedPod[]> = list(
  record(
    {
      ...{ namespace: someText, name: someText, uid: someText },
      isStatic: optional(isTrue),
      direct: optional(oneOf(['pool', 'own'])),
      network: optional(oneOf(['route-eni', 'bridge'])),
      networkFault: optional(text()),
      otherNetwork: optional(text()),
      requestsGroups: optional(isTrue),
    },
    'ignore',
  ),
);

/** Decodes a row of leases. @throws ConfigError, SyntaxError */
export const decodeLease = (body: string): Lease => decodeOrThrow(lease, JSON.parse(body), 'lease');

/** Decodes a row of cooldowns. @throws ConfigError, SyntaxError */
export const decodeCooldown = (body: string): Cooldown => decodeOrThrow(cooldown, JSON.parse(body), 'cooldown');

/** Decodes a row of offers. @throws ConfigError, SyntaxError */
export const decodeOffer = (body: string): Offer => decodeOrThrow(offer, JSON.parse(body), 'offer');

/** Decodes a row of ENIs. @throws ConfigError, SyntaxError */
export const decodeEniRecord = (body: string): EniRecord => decodeOrThrow(eniRecord, JSON.parse(body), 'ENI');

/** Decodes the last supply. @throws ConfigError, SyntaxError */
export const decodeSupply = (body: string): Supply => decodeOrThrow(supply, JSON.parse(body), 'supply');

/** Decodes the podCIDRs of the node. @throws ConfigError, SyntaxError */
export const decodePodCidrs = (body: string): readonly string[] =>
  decodeOrThrow(list(text()), JSON.parse(body), 'podCIDRs');

/** Decodes the Pods of the node. @throws ConfigError, SyntaxError */
export const decodePods = (body: string): readonly RecordedPod[] =>
  decodeOrThrow(recordedPods, JSON.parse(body), 'Pods');
