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
  readonly exclusiveEnis: number;
};

/** Nothing in use: accepts any well-formed maximum. */
export const NO_USAGE: NodeUsage = { routeEnis: 0, ipsOnFullestEni: 0, exclusiveEnis: 0 };

/** The accepted settings, and the faults of the others. */
export type ReadNodeSettings = { readonly settings: NodeSettings; readonly faults: readonly Fault[] };

const MAX_ENIS = 64;
const MAX_IPS = 4096;
const NAME = NODE_ENI_CONFIG_ANNOTATION;

/**
 * Reads the seven annotations that set the pools and limits of one node. A faulty annotation is ignored and reported;
 * the others apply. Both of a warm pair must be present with 0 <= minimum <= maximum, or neither counts. A maximum must
 * not be below what is in use.
 */
export function readNodeSettings(annotations: unknown, usage: NodeUsage = NO_USAGE): ReadNodeSettings {
  const faults = new Faults();
  const values = asRecord(annotations, faults);
  const settings: NodeSettings = {
    ...named('routeWarm', readPair(values, NAME.routeMinWarm, NAME.routeMaxWarm, MAX_ENIS * MAX_IPS, faults)),
    ...named('directWarm', readPair(values, NAME.directMinWarm, NAME.directMaxWarm, MAX_ENIS, faults)),
    ...named('routeMaxAttach', readLimit(values, NAME.routeMaxAttach, MAX_ENIS, usage.routeEnis, faults)),
    ...named('maxIpPerEni', readLimit(values, NAME.maxIpPerEni, MAX_IPS, usage.ipsOnFullestEni, faults)),
    ...named('directMaxAttach', readLimit(values, NAME.directMaxAttach, MAX_ENIS, usage.exclusiveEnis, faults)),
  };
  return { settings, faults: faults.list };
}

type AnnotationValues = Readonly<Record<string, unknown>>;

function asRecord(annotations: unknown, faults: Faults): AnnotationValues {
  if (annotations === undefined || annotations === null) return {};
  // Checked in the same line: an object that is not a list has keys.
  if (typeof annotations === 'object' && !Array.isArray(annotations)) return annotations as AnnotationValues;
  faults.add(PATH, 'texts by name', annotations);
  return {};
}

const PATH = 'metadata.annotations';

function named<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  // The object has no key, or exactly the one key.
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T };
}

function readPair(
  values: AnnotationValues,
  minName: string,
  maxName: string,
  limit: number,
  faults: Faults,
): WarmRange | undefined {
  if (!isPresent(values, minName) && !isPresent(values, maxName)) return undefined;
  for (const [name, other] of [
    [minName, maxName],
    [maxName, minName],
  ] as const) {
    if (!isPresent(values, name)) faults.add(`${PATH}.${name}`, `a value, as ${other} is there`, values[name]);
  }
  const min = readNumber(values, minName, limit, faults);
  const max = readNumber(values, maxName, limit, faults);
  if (min === undefined || max === undefined) return undefined;
  if (min <= max) return { min, max };
  faults.add(`${PATH}.${maxName}`, `a number not below the minimum, ${min}`, values[maxName]);
  return undefined;
}

function readLimit(
  values: AnnotationValues,
  name: string,
  limit: number,
  inUse: number,
  faults: Faults,
): number | undefined {
  const value = readNumber(values, name, limit, faults);
  if (value === undefined || value >= inUse) return value;
  faults.add(`${PATH}.${name}`, `a number not below what is in use, ${inUse}`, values[name]);
  return undefined;
}

function readNumber(values: AnnotationValues, name: string, limit: number, faults: Faults): number | undefined {
  if (!isPresent(values, name)) return undefined;
  const value = values[name];
  if (typeof value === 'string' && /^[0-9]{1,9}$/.test(value) && Number(value) <= limit) return Number(value);
  faults.add(`${PATH}.${name}`, `a whole number from 0 to ${limit} in quotes`, value);
  return undefined;
}

function isPresent(values: AnnotationValues, name: string): boolean {
  return values[name] !== undefined && values[name] !== null;
}
