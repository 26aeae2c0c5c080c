import { join } from 'node:path';
import type { Family } from '../../dataplane/ip-prefix.ts';
import type { PodCidr } from '../../dataplane/network.ts';
import { MAX_ENI_SLOT } from '../../dataplane/numbers.ts';
import { podCidrOf } from '../../dataplane/pod-cidr.ts';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import {
  boolean,
  ConfigError,
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
import { readRegularText } from '../../runtime/read-regular-file.ts';
import { NODE_RECORD_FILE, type NodeRecord } from './node-record.ts';

/**
 * Writes the record into the state folder, mode 0600; a reader gets the whole old record or the whole new one.
 * @throws the file system's own error.
 */
export function writeNodeRecord(dir: string, record: NodeRecord): void {
  writeFileAtomically(join(dir, NODE_RECORD_FILE), `${JSON.stringify(toFile(record))}\n`, 0o600);
}

/** Blocks are written by their CIDR alone, as in all releases; former ones are named once more. */
function toFile({ node, ...record }: NodeRecord): object {
  const formerCidrs = node.podCidrs.filter(({ isCurrent }) => !isCurrent).map(({ cidr }) => cidr);
  return {
    ...record,
    node: {
      ...node,
      podCidrs: node.podCidrs.map(({ cidr }) => cidr),
      ...(formerCidrs.length === 0 ? {} : { formerCidrs }),
    },
  };
}

/**
 * Reads a record.
 * @throws FileError when it is no regular file, or too large; ConfigError when it is not JSON or not of this shape, naming every fault; the file system's own error when it
 * cannot be read.
 */
export function readNodeRecord(path: string): NodeRecord {
  const { node, ...record } = decodeOrThrow(decodeNodeRecord, parse(path, readRegularText(path, MAX_BYTES)), path);
  const { formerCidrs = [], ...recorded } = node;
  const podCidrs = node.podCidrs.map(({ cidr }) => podCidrOf(cidr, !formerCidrs.includes(cidr)));
  return { ...record, node: { ...recorded, podCidrs } };
}

/** Reads the record of a state folder; undefined when there is none yet, or one of a release that cannot be read. */
export function findNodeRecord(stateDir: string): NodeRecord | undefined {
  try {
    return readNodeRecord(join(stateDir, NODE_RECORD_FILE));
  } catch {
    return undefined;
  }
}

/** Largest record that is read, bytes. One of 40 ENIs with 30 addresses each has 100 kB. */
const MAX_BYTES = 16 * 1024 * 1024;

const family: Decoder<Family> = (value, path, faults) => {
  if (value === 4 || value === 6) return value;
  faults.add(path, '4 or 6', value);
  return undefined;
};

const cidrText = text();
const podCidr: Decoder<PodCidr> = (value, path, faults) => {
  const cidr = cidrText(value, path, faults);
  return cidr === undefined ? undefined : podCidrOf(cidr);
};

const UINT32_MAX = 0xffff_ffff;
const INT32_MAX = 0x7fff_ffff;
const uint32 = integer(0, UINT32_MAX);
const ifindex = integer(0, INT32_MAX);
const texts = list(text());

const decodeBridge = record(
  {
    ...{ name: required(text()), ifindex: required(ifindex), isPresent: required(boolean), mtu: required(uint32) },
    wiring: required(oneOf(['bridge', 'routed'])),
    masquerade: optional(record({ exempt: required(texts) }, 'ignore')),
  },
  'ignore',
);

const decodeConnected = record(
  { cidr: required(text()), ifindex: required(ifindex), ifname: required(text()), prefsrc: optional(text()) },
  'ignore',
);

const decodeNode = record(
  {
    ruleMode: required(oneOf(['compact', 'per-pod'])),
    eniMarkMask: required(uint32),
    rpFilterMode: required(oneOf(['loose', 'product'])),
    egress: required(oneOf(['eni', 'node'])),
    primary: required(
      record({ ifindex: required(ifindex), ifname: required(text()), addresses: required(texts) }, 'ignore'),
    ),
    podCidrs: required(list(podCidr)),
    formerCidrs: optional(texts),
    bridge: optional(decodeBridge),
    families: required(list(family)),
    assignedIps: optional(texts),
    nodePort: required(boolean),
    vpcCidrs: required(texts),
    egressExempt: optional(texts),
    hasDirect: optional(boolean),
    serviceCidrs: optional(texts),
    nftables: optional(boolean),
    connected: optional(list(decodeConnected)),
    fastPath: optional(oneOf(['bpf', 'flowtable'])),
  },
  'ignore',
);

const decodeEni = record(
  {
    eniId: required(text()),
    mac: required(text()),
    ifindex: required(ifindex),
    ifname: required(text()),
    mtu: required(uint32),
    table: required(uint32),
    slot: required(integer(1, MAX_ENI_SLOT)),
    addresses: required(list(record({ ip: required(text()), gateway: required(text()) }, 'ignore'))),
    podIps: optional(texts),
  },
  'ignore',
);

/** Decodes a record; unknown fields are of a newer agent and are ignored. */
const decodeNodeRecord = record(
  {
    bootId: required(text()),
    agentRelease: required(text()),
    nodeName: required(text()),
    role: optional(oneOf(['uplinks'])),
    node: required(decodeNode),
    enis: required(list(decodeEni)),
  },
  'ignore',
);

function parse(path: string, content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    throw new ConfigError(path, [{ path: '', expected: 'JSON', got: `${content.length} characters that are not` }]);
  }
}
