import { type Fault, Faults } from '../runtime/decode.ts';
import { ownText } from '../runtime/own-text.ts';
import { type EipRequest, readEipRequest } from './eip-request.ts';
import { parseGoDuration } from './go-duration.ts';
import { anyIpAddress } from './ip-text.ts';
import { POD_ANNOTATION } from './names.ts';
import { readPodNetworks } from './pod-networks.ts';

/** What a Pod requests by its annotations. */
export type PodNetworkRequest = {
  /** How the Pod is attached to the VPC; undefined: it has another network, or only its resources decide. */
  readonly mode: 'route-eni' | 'direct-eni' | undefined;
  /** Whether its address is static: the next Pod of the same name gets it. */
  readonly isStatic: boolean;
  /** Milliseconds that a static address is retained without a Pod; 0: forever; undefined: as configured. */
  readonly claimExpiredMs: number | undefined;
  readonly nominatedIp: string | undefined;
  /** The only subnets that the Pod accepts; undefined: any subnet of its node. */
  readonly nominatedSubnetIds: readonly string[] | undefined;
  readonly eip: EipRequest | undefined;
  /** Security groups of an exclusive ENI, in order of precedence; undefined: those of its node. */
  readonly securityGroupIds: readonly string[] | undefined;
};

/** What a Pod requests, and the faults of annotations that could not be read. Paths are names of annotations. */
export type ReadPodNetworkRequest = { readonly request: PodNetworkRequest; readonly faults: readonly Fault[] };

/** Annotations of a Pod by name. */
export type Annotations = Readonly<Record<string, string>>;

/**
 * Reads what a Pod requests by its annotations. Never throws: a malformed annotation is a fault and counts as absent.
 * The delete policy is an exception: an unknown value counts as `Never`, because a released address cannot be
 * recovered.
 */
export function readPodNetworkRequest(annotations: Annotations = {}): ReadPodNetworkRequest {
  const faults = new Faults();
  const read = <T>(name: string, one: (text: string, path: string, faults: Faults) => T | undefined): T | undefined => {
    const text = annotations[name];
    return text === undefined ? undefined : one(boundedOf(text).trim(), name, faults);
  };
  const request: PodNetworkRequest = {
    mode: read(POD_ANNOTATION.networks, modeOf),
    isStatic: read(POD_ANNOTATION.deletePolicy, isNever) ?? false,
    claimExpiredMs: read(POD_ANNOTATION.claimExpiredDuration, readClaimExpiry),
    nominatedIp: read(POD_ANNOTATION.nominatedVpcIp, ownIpAddress),
    nominatedSubnetIds: read(POD_ANNOTATION.nominatedSubnets, idsOf('subnet-')),
    eip: readEipRequest(annotations, faults),
    securityGroupIds: read(POD_ANNOTATION.securityGroups, idsOf('sg-')),
  };
  return { request, faults: faults.list };
}

/** A longer text is no valid value: the longest list of ids is half as long. */
export const MAX_ANNOTATION_CHARS = 8_192;
const SHOWN_CHARS = 64;

/** Shortens a text that is too long. It is a fault in any form, and is reported as one. */
export function boundedOf(text: string, most = MAX_ANNOTATION_CHARS): string {
  return text.length <= most ? text : ownText(`${text.slice(0, SHOWN_CHARS)}… (${text.length} characters)`);
}

const ownIpAddress: typeof anyIpAddress = (text, path, faults) => {
  const ip = anyIpAddress(text, path, faults);
  return ip === undefined ? undefined : ownText(ip);
};

/** Reports whether a Pod has a static address. Every component uses this function for the question. */
export function isStaticPod(annotations: Annotations = {}): boolean {
  return readPodNetworkRequest(annotations).request.isStatic;
}

/** Least time for which a static address is retained, milliseconds. The value of Tencent's product. */
export const MIN_CLAIM_EXPIRY_MS = 300_000;

/** Reads a Go duration of at least five minutes, or 0s; returns milliseconds. */
export function readClaimExpiry(text: string, path: string, faults: Faults): number | undefined {
  const ms = parseGoDuration(text);
  if (ms !== undefined && (ms === 0 || ms >= MIN_CLAIM_EXPIRY_MS)) return ms;
  faults.add(path, 'a duration of at least 5m such as 30m or 1h30m, or 0s forever', text);
  return undefined;
}

function modeOf(text: string, path: string, faults: Faults): PodNetworkRequest['mode'] {
  const networks = readPodNetworks(text);
  if (networks.kind === 'refused') faults.add(path, networks.expected, networks.got);
  if (networks.kind !== 'named') return undefined;
  if (networks.name === 'tke-direct-eni') return 'direct-eni';
  return networks.name === 'tke-route-eni' ? 'route-eni' : undefined;
}

function isNever(text: string, path: string, faults: Faults): boolean {
  if (text === 'Immediate' || text === '') return false;
  if (text !== 'Never') faults.add(path, 'Never or Immediate', text);
  return true;
}

const MAX_IDS = 64;

function idsOf(start: string) {
  return (text: string, path: string, faults: Faults): readonly string[] | undefined => {
    const ids = text.split(',').map((one) => one.trim());
    const isGood = ids.length <= MAX_IDS && ids.every((one) => one.startsWith(start) && /^[a-z0-9-]{4,64}$/.test(one));
    if (isGood) return [...new Set(ids)].map(ownText);
    faults.add(path, `ids such as ${start}6cjx2o4a with commas`, text);
    return undefined;
  };
}
