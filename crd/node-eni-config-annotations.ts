import { type Fault, Faults } from '../runtime/decode.ts';
import { NODE_ENI_CONFIG_ANNOTATION } from './names.ts';

/** The range of spare addresses or ENIs that a node holds ready. */
type WarmRange = { readonly min: number; readonly max: number };

/** The accepted settings of one node from the annotations of its NodeENIConfig. */
export type NodeSettings = {
  /** Spare addresses of shared ENIs. */
  readonly routeWarm?: WarmRange;
  /** Spare exclusive ENIs. */
  readonly directWarm?: WarmRange;
  /** Most shared ENIs on the node. */
  readonly routeMaxAttach?: number;
  /** Most Pod addresses on one shared ENI. */
  readonly maxIpPerEni?: number;
  /** Most exclusive ENIs on the node. */
  readonly directMaxAttach?: number;
};

/** What Pods of a node use now. A maximum below it is refused: nothing in use is taken away. */
export type NodeUsage = {
  /** Shared ENIs with an address in use. */
  readonly routeEnis: number;
  /** Addresses in use on the ENI that has the most. */
  readonly ipsOnFullestEni: number;
  /** Exclusive ENIs in use. */
  readonly directEnis: number;
};

/** Nothing in use: accepts any well-formed maximum. */
export const NO_USAGE: NodeUsage = { routeEnis: 0, ipsOnFullestEni: 0, directEnis: 0 };

/** The accepted settings, and the faults of the others. */
export type ReadNodeSettings = { readonly settings: NodeSettings; readonly faults: readonly Fault[] };

const MOST_ENIS = 64;
const MOST_IPS = 4096;
const NAME = NODE_ENI_CONFIG_ANNOTATION;

/**
 * Reads the seven annotations that set the pools and limits of one node. A faulty annotation is ignored and reported;
 * the others apply. Both of a warm pair must be present with 0 <= minimum <= maximum, or neither counts. A maximum must
 * not be below what is in use.
 */
export function readNodeSettings(annotations: unknown, usage: NodeUsage = NO_USAGE): ReadNodeSettings {
  const faults = new Faults();
  const given = asRecord(annotations, faults);
  const settings: NodeSettings = {
    ...named('routeWarm', readPair(given, NAME.routeMinWarm, NAME.routeMaxWarm, MOST_ENIS * MOST_IPS, faults)),
    ...named('directWarm', readPair(given, NAME.directMinWarm, NAME.directMaxWarm, MOST_ENIS, faults)),
    ...named('routeMaxAttach', readMost(given, NAME.routeMaxAttach, MOST_ENIS, usage.routeEnis, faults)),
    ...named('maxIpPerEni', readMost(given, NAME.maxIpPerEni, MOST_IPS, usage.ipsOnFullestEni, faults)),
    ...named('directMaxAttach', readMost(given, NAME.directMaxAttach, MOST_ENIS, usage.directEnis, faults)),
  };
  return { settings, faults: faults.list };
}

type Given = Readonly<Record<string, unknown>>;

function asRecord(annotations: unknown, faults: Faults): Given {
  if (annotations === undefined || annotations === null) return {};
  // Checked in the same line: an object that is not a list has keys.
  if (typeof annotations === 'object' && !Array.isArray(annotations)) return annotations as Given;
  faults.add(PATH, 'texts by name', annotations);
  return {};
}

const PATH = 'metadata.annotations';

function named<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  // The object has no key, or exactly the one key.
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T };
}

function readPair(given: Given, minName: string, maxName: string, most: number, faults: Faults): WarmRange | undefined {
  if (!isPresent(given, minName) && !isPresent(given, maxName)) return undefined;
  for (const [name, other] of [
    [minName, maxName],
    [maxName, minName],
  ] as const) {
    if (!isPresent(given, name)) faults.add(`${PATH}.${name}`, `a value, as ${other} is there`, given[name]);
  }
  const min = readNumber(given, minName, most, faults);
  const max = readNumber(given, maxName, most, faults);
  if (min === undefined || max === undefined) return undefined;
  if (min <= max) return { min, max };
  faults.add(`${PATH}.${maxName}`, `a number not below the minimum, ${min}`, given[maxName]);
  return undefined;
}

function readMost(given: Given, name: string, most: number, inUse: number, faults: Faults): number | undefined {
  const value = readNumber(given, name, most, faults);
  if (value === undefined || value >= inUse) return value;
  faults.add(`${PATH}.${name}`, `a number not below what is in use, ${inUse}`, given[name]);
  return undefined;
}

function readNumber(given: Given, name: string, most: number, faults: Faults): number | undefined {
  if (!isPresent(given, name)) return undefined;
  const value = given[name];
  if (typeof value === 'string' && /^[0-9]{1,9}$/.test(value) && Number(value) <= most) return Number(value);
  faults.add(`${PATH}.${name}`, `a whole number from 0 to ${most} in quotes`, value);
  return undefined;
}

function isPresent(given: Given, name: string): boolean {
  return given[name] !== undefined && given[name] !== null;
}
