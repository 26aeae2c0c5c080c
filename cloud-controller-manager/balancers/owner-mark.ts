import { createHash } from 'node:crypto';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import {
  boolean,
  type Decoder,
  Faults,
  integer,
  isRecord,
  optional,
  record,
  required,
  text,
} from '../../runtime/decode.ts';
import type { PoolPorts } from './place-on-pool.ts';
import type { ListenerKey } from './target-place.ts';

/**
 * What is on record about the load balancer of an owner, before and after it is made: the annotation
 * `load-balancer-record`.
 */
export type OwnerMark = {
  /** Of the object that it was written for. Absent: by a release that wrote none; it counts where the load balancer shows it. */
  readonly uid?: string;
  /** Counts the load balancers that were made for the owner: the first one is 1. 0: none was begun. */
  readonly serial: number;
  /** Absent while it is being made. */
  readonly loadBalancerId?: string;
  /** Hash of what is in force, while nothing has changed for a while; removed before the next change. */
  readonly settled?: string;
  /** The port of each listener on a load balancer of a pool; absent: it was given none. Those that are the Service's own are left out. */
  readonly ports?: PoolPorts;
  /** Whether a security group for its source ranges was begun, and may be there. */
  readonly sourceGroup?: boolean;
  /** Whether its listeners are those that Ingresses share on the load balancer. */
  readonly grouped?: boolean;
};

const poolPorts: Decoder<PoolPorts> = (value, path, faults) => {
  const ports = new Map<ListenerKey, number>();
  for (const [key, port] of isRecord(value) ? Object.entries(value) : []) {
    if (/^(TCP|UDP)\/[1-9][0-9]{0,4}$/.test(key) && Number.isInteger(port)) ports.set(key as ListenerKey, Number(port));
    else faults.add(path, 'ports by listener, such as TCP/80', key);
  }
  return ports;
};
const MAX_SERIAL = 1_000_000;
/** With an allotted port for each of fifty listeners. */
const MAX_CHARS = 2_000;
const MARK = record(
  {
    uid: optional(text(/^[\x21-\x7e]{1,64}$/, 'a uid')),
    serial: required(integer(0, MAX_SERIAL)),
    loadBalancerId: optional(text(/^lb-[a-z0-9]{4,32}$/, 'an id such as lb-a1b2c3d4')),
    settled: optional(text(/^[0-9a-f]{16}$/, 'a hash of 16 hexadecimal digits')),
    sourceGroup: optional(boolean),
    grouped: optional(boolean),
    ports: optional(poolPorts),
  },
  'ignore',
);

/**
 * Reads the mark of an owner. One that is not readable counts as none, as the load balancer is found by its tag; so does
 * one that was written for another object: the owner is a copy, or restored.
 */
export function readOwnerMark({
  annotations,
  uid,
}: {
  readonly annotations: Readonly<Record<string, string>>;
  readonly uid: string;
}): OwnerMark {
  const none: OwnerMark = { serial: 0 };
  const json = annotations[SERVICE_ANNOTATION.record];
  if (json === undefined || json.length > MAX_CHARS) return none;
  try {
    const read: OwnerMark = MARK(JSON.parse(json), '', new Faults()) ?? none;
    return read.uid === undefined || read.uid === uid ? read : none;
  } catch {
    return none;
  }
}

/** Returns the ClientToken of the nth load balancer of an owner: the same after each crash, and another for each number. */
export function tokenOf(owner: string, serial: number): string {
  return `tke-eni-${createHash('sha256').update(`${owner} ${serial}`).digest('hex').slice(0, 40)}`;
}
