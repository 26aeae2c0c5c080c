import { type Faults, isRecord } from '../runtime/decode.ts';
import { POD_ANNOTATION } from './names.ts';

/** The public address that a Pod requests. */
export type EipRequest = {
  /** Existing EIPs to choose from; empty: a new one is allocated. */
  readonly eipIds: readonly string[];
  readonly bandwidthMbps: number;
  readonly isp: (typeof EIP_ISPS)[number];
  readonly chargeType: (typeof EIP_CHARGE_TYPES)[number];
  readonly bandwidthPackageId?: string;
  /** Whether the EIP is retained for the next Pod of the same name. */
  readonly isRetained: boolean;
};

/** Carriers of an EIP. @see AllocateAddresses, InternetServiceProvider */
export const EIP_ISPS = ['BGP', 'CMCC', 'CTCC', 'CUCC'] as const;
/** How an EIP is paid. @see AllocateAddresses, InternetChargeType */
export const EIP_CHARGE_TYPES = [
  'TRAFFIC_POSTPAID_BY_HOUR',
  'BANDWIDTH_POSTPAID_BY_HOUR',
  'BANDWIDTH_PACKAGE',
  'BANDWIDTH_PREPAID_BY_MONTH',
] as const;

/** The charge types that a Pod may request. An EIP that is paid a month in advance cannot be returned with the Pod. */
const CHARGED_AS_USED = EIP_CHARGE_TYPES.filter((one) => one !== 'BANDWIDTH_PREPAID_BY_MONTH');

/** Properties of an EIP that the annotations do not set. The defaults are those of Tencent's product. */
const DEFAULTS = { bandwidthMbps: 100, isp: 'BGP', chargeType: 'TRAFFIC_POSTPAID_BY_HOUR' } as const;
const MAX_MBPS = 10_000;
const MAX_IDS = 64;

/**
 * Reads the EIP that a Pod requests; undefined when it requests none. A malformed annotation adds a fault, and no EIP
 * is requested then: an EIP with other properties than intended would cost money.
 */
export function readEipRequest(annotations: Readonly<Record<string, string>>, faults: Faults): EipRequest | undefined {
  const attributes = annotations[POD_ANNOTATION.eipAttributes];
  const list = annotations[POD_ANNOTATION.eipIdList];
  if (attributes === undefined && list === undefined) return undefined;
  const before = faults.count;
  const eipIds = list === undefined ? [] : readIds(list, faults);
  const attributeValues = readAttributes(attributes ?? '', faults);
  const isRetained = readPolicy(annotations[POD_ANNOTATION.eipDeletePolicy], faults);
  return faults.count > before ? undefined : { eipIds, ...attributeValues, isRetained };
}

function readPolicy(text: string | undefined, faults: Faults): boolean {
  const policy = text?.trim() ?? '';
  if (policy !== '' && policy !== 'Never' && policy !== 'Immediate') {
    faults.add(POD_ANNOTATION.eipDeletePolicy, 'Never or Immediate', policy);
  }
  return policy === 'Never';
}

function readIds(text: string, faults: Faults): readonly string[] {
  const ids = text.split(',').map((one) => one.trim());
  const isGood = ids.length <= MAX_IDS && ids.every((one) => /^eip-[a-z0-9]{1,32}$/.test(one));
  if (!isGood) faults.add(POD_ANNOTATION.eipIdList, 'ids such as eip-1a2b3c4d with commas', text);
  return [...new Set(ids)];
}

type Attributes = Pick<EipRequest, 'bandwidthMbps' | 'isp' | 'chargeType' | 'bandwidthPackageId'>;

/** Keys that are served. */
const ATTRIBUTES: readonly string[] = [
  'InternetMaxBandwidthOut',
  'Bandwidth',
  'InternetServiceProvider',
  'ISP',
  'InternetChargeType',
  'BandwidthPackageId',
];
/** Values that an EIP has anyway: those of `AllocateAddresses` for an address of the kind that is allocated here. */
const IMPLIED: Readonly<Record<string, unknown>> = { AddressCount: 1, AddressType: 'EIP' };
const MAX_KEY_LENGTH = 64;

/** Adds a fault for each key that would be left out: another EIP than intended would cost money, and cannot be changed into it. */
function refuseUnserved(values: Readonly<Record<string, unknown>>, faults: Faults): void {
  for (const [key, value] of Object.entries(values)) {
    if (ATTRIBUTES.includes(key) || (Object.hasOwn(IMPLIED, key) && IMPLIED[key] === value)) continue;
    const path = `${POD_ANNOTATION.eipAttributes}.${key.slice(0, MAX_KEY_LENGTH)}`;
    faults.add(path, `no such attribute: of AllocateAddresses ${ATTRIBUTES.join(', ')} are served`, value);
  }
}

/**
 * Reads the attributes. The first keys of Tencent's product (Bandwidth, ISP) and the names of the API may occur
 * together; the names of the API take precedence.
 */
function readAttributes(text: string, faults: Faults): Attributes {
  const path = POD_ANNOTATION.eipAttributes;
  const values = text.trim() === '' ? {} : parse(text);
  if (values === undefined) {
    faults.add(path, 'a JSON object such as {"InternetMaxBandwidthOut":50}', text);
    return DEFAULTS;
  }
  refuseUnserved(values, faults);
  const given = values['InternetMaxBandwidthOut'] ?? values['Bandwidth'] ?? DEFAULTS.bandwidthMbps;
  const bandwidth = readMbps(given);
  const isp = values['InternetServiceProvider'] ?? values['ISP'] ?? DEFAULTS.isp;
  const chargeType = values['InternetChargeType'] ?? DEFAULTS.chargeType;
  const packageId = values['BandwidthPackageId'];
  const knownIsp = EIP_ISPS.find((one) => one === isp);
  const knownCharge = CHARGED_AS_USED.find((one) => one === chargeType);
  if (!Number.isInteger(bandwidth) || bandwidth < 1 || bandwidth > MAX_MBPS) {
    faults.add(`${path}.InternetMaxBandwidthOut`, `a whole number of Mbps from 1 to ${MAX_MBPS}`, given);
  }
  if (knownIsp === undefined) faults.add(`${path}.InternetServiceProvider`, `one of ${EIP_ISPS.join(', ')}`, isp);
  if (knownCharge === undefined) {
    faults.add(`${path}.InternetChargeType`, `one of ${CHARGED_AS_USED.join(', ')}`, chargeType);
  }
  if (packageId !== undefined && (typeof packageId !== 'string' || !/^bwp-[a-z0-9]{1,32}$/.test(packageId))) {
    faults.add(`${path}.BandwidthPackageId`, 'an id such as bwp-1a2b3c4d', packageId);
  }
  return {
    bandwidthMbps: bandwidth,
    isp: knownIsp ?? DEFAULTS.isp,
    chargeType: knownCharge ?? DEFAULTS.chargeType,
    ...(typeof packageId === 'string' ? { bandwidthPackageId: packageId } : {}),
  };
}

/** Reads a number, or a text of digits as Tencent's product takes it; NaN for anything else. */
function readMbps(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
