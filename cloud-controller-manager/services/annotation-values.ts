import { isIPv4 } from 'node:net';
import { type Decoder, Faults, oneOf, optional, record, text } from '../../runtime/decode.ts';
import { type LabelSelector, parseLabelSelector } from '../backends/label-selector.ts';

/** What a text means, or what was expected instead. */
type Parsed<T> = { readonly kind: 'value'; readonly value: T } | { readonly kind: 'fault'; readonly expected: string };

/** Turns the text of an annotation into a value. */
export type Parser<T> = (text: string) => Parsed<T>;

/** A text of a cloud's own making; longer ones are refused before they are parsed. */
const MAX_CHARS = 4_096;
const MAX_GROUPS = 5;
const NETWORK = /^[0-9A-Fa-f:.]{2,45}\/\d{1,3}$/;

/** Reads "true" or "false". */
export const flag: Parser<boolean> = (text) => {
  if (text === 'true' || text === 'false') return value(text === 'true');
  return fault('"true" or "false"');
};

/** Reads one of several words. */
export function word<const T extends string>(...words: readonly T[]): Parser<T> {
  return (text) => {
    const found = words.find((one) => one === text);
    return found === undefined ? fault(words.map((one) => `"${one}"`).join(' or ')) : value(found);
  };
}

/** Reads the name of an object. */
export const objectName: Parser<string> = (text) =>
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text) ? value(text) : fault('the name of an object');

/** Reads the name of a pool. */
export const poolName: Parser<string> = (text) =>
  /^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/.test(text)
    ? value(text)
    : fault('a name of at most 32 characters such as shared');

/** Reads the id of something in the cloud: `subnet-…`. */
export function cloudId(prefix: string): Parser<string> {
  const pattern = idPattern(prefix);
  return (text) => (pattern.test(text) ? value(text) : fault(`an id such as ${prefix}-a1b2c3d4`));
}

/** Reads at most five ids with commas; the empty text is none. */
export function cloudIds(prefix: string): Parser<readonly string[]> {
  const pattern = idPattern(prefix);
  return (text) => {
    if (text.length > MAX_CHARS) return fault(`at most ${MAX_GROUPS} ids`);
    const ids = text === '' ? [] : text.split(',').map((id) => id.trim());
    const isGood = ids.length <= MAX_GROUPS && ids.every((id) => pattern.test(id)) && new Set(ids).size === ids.length;
    return isGood ? value(ids) : fault(`at most ${MAX_GROUPS} different ids such as ${prefix}-a1b2c3d4, with commas`);
  };
}

/** Reads a whole number. */
export function wholeNumber(min: number, max: number): Parser<number> {
  return (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    return number >= min && number <= max ? value(number) : fault(`a whole number from ${min} to ${max}`);
  };
}

/** Reads a label selector. */
export const selector: Parser<LabelSelector> = (text) => {
  const parsed = parseLabelSelector(text);
  return parsed === undefined ? fault('a label selector such as pool=edge, or pool in (edge,front)') : value(parsed);
};

/** Reads networks with commas, each with its address and prefix length; a text of blanks is none. */
export const networks: Parser<readonly string[]> = (text) => {
  if (text.length > MAX_CHARS) return fault(`at most ${MAX_CHARS} characters`);
  const all = text.trim() === '' ? [] : text.split(',').map((one) => one.trim());
  return all.every((one) => NETWORK.test(one)) ? value(all) : fault('networks such as 10.0.0.0/8, with commas');
};

/** Fields of the request that makes a load balancer, as far as they are passed on. */
type CreationFields = {
  readonly AddressIPVersion?: string;
  readonly VipIsp?: 'BGP' | 'CMCC' | 'CTCC' | 'CUCC';
  readonly MasterZoneId?: string;
  readonly SlaType?: string;
  readonly Vip?: string;
};

const NAME = text(/^[A-Za-z0-9._-]{1,64}$/, 'a word of at most 64 characters');
const IPV4_ONLY = text(/^ipv4$/i, 'IPV4: no other family is served');
const ADDRESS: Decoder<string> = (address, path, faults) => {
  if (typeof address === 'string' && isIPv4(address)) return address;
  faults.add(path, 'an IPv4 address', address);
  return undefined;
};
const CREATION = record(
  {
    AddressIPVersion: optional(IPV4_ONLY),
    VipIsp: optional(oneOf(['BGP', 'CMCC', 'CTCC', 'CUCC'])),
    MasterZoneId: optional(NAME),
    SlaType: optional(NAME),
    Vip: optional(ADDRESS),
  },
  'reject',
);

/** Reads the JSON of fields of the request CreateLoadBalancer. */
export const creationFields: Parser<CreationFields> = (json) => {
  if (json.length > MAX_CHARS) return fault(`at most ${MAX_CHARS} characters`);
  let wire: unknown;
  try {
    wire = JSON.parse(json);
  } catch {
    return fault('a JSON object such as {"VipIsp":"CMCC"}');
  }
  const faults = new Faults();
  const decoded = CREATION(wire, '', faults);
  if (decoded !== undefined) return value(decoded);
  const [first] = faults.list;
  const place = first === undefined || first.path === '' ? 'a JSON object' : `${first.path}: ${first.expected}`;
  return fault(place);
};

function idPattern(prefix: string): RegExp {
  return new RegExp(`^${prefix}-[a-z0-9]{4,32}$`);
}

function value<T>(one: T): Parsed<T> {
  return { kind: 'value', value: one };
}

function fault(expected: string): Parsed<never> {
  return { kind: 'fault', expected };
}
