import type { CloudSnapshot, Intent, IntentResult, ObservedEni } from '../../ipamd/decide/decision.ts';

/** What the cloud holds: the truth that everybody else only hears of. Small: one node, one subnet, a few addresses. */
export type CloudTruth = {
  /** Oldest first. */
  readonly enis: readonly CloudEni[];
  /** Addresses of the subnet that another node has: it uses them, and nobody asks us. */
  readonly foreign: readonly string[];
  /** Answers by ClientToken: a call with a known one is answered again and not done again. */
  readonly answers: ReadonlyMap<string, CloudAnswer>;
  /** Ids are never used twice. */
  readonly nextEni: number;
};

/** An ENI as it is. What its tags say is so for every ENI of ours: a creation carries them. */
export type CloudEni = {
  readonly eniId: string;
  readonly name: string;
  readonly isAttached: boolean;
  /** The instance that it is on, or was made for. Default: the one there is. */
  readonly instanceId?: string;
  /** Sorted. */
  readonly ips: readonly string[];
};

/** What the cloud answers to a call that changes something. */
export type CloudAnswer =
  | { readonly kind: 'done'; readonly result: IntentResult }
  | { readonly kind: 'refused'; readonly code: string };

/** One of the ways in which a call may go: the cloud chooses addresses as it likes. */
type CloudEffect = { readonly cloud: CloudTruth; readonly answer: CloudAnswer; readonly words: string };

/** Limits of the small world. */
export const CLOUD_LIMITS = { enis: 2, ipsPerEni: 2 } as const;
export const INSTANCE_ID = 'ins-1';
export const SUBNET_ID = 'subnet-1';
const SUBNET_CIDR = '10.0.0.0/16';

/** A cloud in which nothing was made yet. */
export const EMPTY_CLOUD: CloudTruth = { enis: [], foreign: [], answers: new Map(), nextEni: 1 };

/** Lists the ways in which a call may change the cloud. Asynchronous tasks count as done: a late one is a late call. */
export function effectsOf(cloud: CloudTruth, intent: Intent, ips: readonly string[]): readonly CloudEffect[] {
  const known = intent.clientToken === undefined ? undefined : cloud.answers.get(intent.clientToken);
  if (known !== undefined) return [{ cloud, answer: known, words: 'known by its token' }];
  const effects = firstEffectsOf(cloud, intent, ips);
  const { clientToken } = intent;
  if (clientToken === undefined) return effects;
  return effects.map((effect) =>
    effect.answer.kind === 'refused'
      ? effect
      : {
          ...effect,
          cloud: { ...effect.cloud, answers: new Map(effect.cloud.answers).set(clientToken, effect.answer) },
        },
  );
}

function firstEffectsOf(cloud: CloudTruth, intent: Intent, ips: readonly string[]): readonly CloudEffect[] {
  const eni = cloud.enis.find(({ eniId }) => eniId === intent.eniID);
  switch (intent.action) {
    case 'CreateNetworkInterface':
      return create(cloud, intent, ips);
    case 'AssignPrivateIpAddresses':
      return eni === undefined ? [refused(cloud, 'ResourceNotFound')] : assign(cloud, eni, intent, ips);
    case 'AttachNetworkInterface':
      if (eni === undefined) return [refused(cloud, 'ResourceNotFound')];
      if (eni.isAttached) return [refused(cloud, 'UnsupportedOperation.InvalidState')];
      if (cloud.enis.filter(({ isAttached }) => isAttached).length >= CLOUD_LIMITS.enis) {
        return [refused(cloud, 'LimitExceeded')];
      }
      return [
        done(withEni(cloud, { ...eni, isAttached: true }), attachResult({ ...eni, isAttached: true }), eni.eniId),
      ];
    case 'DetachNetworkInterface':
      if (eni === undefined) return [refused(cloud, 'ResourceNotFound')];
      if (!eni.isAttached) return [refused(cloud, 'UnsupportedOperation.InvalidState')];
      return [done(withEni(cloud, { ...eni, isAttached: false }), { action: intent.action }, eni.eniId)];
    case 'DeleteNetworkInterface':
      if (eni === undefined) return [refused(cloud, 'ResourceNotFound')];
      if (eni.isAttached) return [refused(cloud, 'ResourceInUse')];
      return [
        done({ ...cloud, enis: cloud.enis.filter((other) => other !== eni) }, { action: intent.action }, eni.eniId),
      ];
    case 'UnassignPrivateIpAddresses': {
      if (eni === undefined) return [refused(cloud, 'ResourceNotFound')];
      const gone = intent.ips ?? [];
      const left = eni.ips.filter((ip) => !gone.includes(ip));
      return [done(withEni(cloud, { ...eni, ips: left }), { action: intent.action, ips: gone }, gone.join(' '))];
    }
    case 'MigratePrivateIpAddress':
      return [move(cloud, eni, intent)];
    default:
      throw new Error(`the model has no ${intent.action}`);
  }
}

function create(cloud: CloudTruth, intent: Intent, ips: readonly string[]): readonly CloudEffect[] {
  const choices = choose(freeIps(cloud, ips), intent.ipCount ?? 0);
  if (choices.length === 0) return [refused(cloud, 'ResourceInsufficient.Subnet')];
  return choices.map((chosen) => {
    const eniId = `eni-${cloud.nextEni}`;
    const eni: CloudEni = { eniId, name: intent.resourceName ?? '', isAttached: false, ips: chosen };
    const result: IntentResult = { action: 'CreateNetworkInterface', eni: seenEni(eni) };
    return done(
      { ...cloud, enis: [...cloud.enis, eni], nextEni: cloud.nextEni + 1 },
      result,
      `${eniId} with ${chosen.join(' ')}`,
    );
  });
}

function move(cloud: CloudTruth, source: CloudEni | undefined, { targetENIID, ips = [] }: Intent): CloudEffect {
  const target = cloud.enis.find(({ eniId }) => eniId === targetENIID);
  if (source === undefined || target === undefined) return refused(cloud, 'ResourceNotFound');
  if (!source.isAttached || !target.isAttached) return refused(cloud, 'UnsupportedOperation.InvalidState');
  if (!ips.every((ip) => source.ips.includes(ip))) return refused(cloud, 'InvalidParameterValue');
  if (target.ips.length + ips.length > CLOUD_LIMITS.ipsPerEni) return refused(cloud, 'LimitExceeded');
  const left = withEni(cloud, { ...source, ips: source.ips.filter((ip) => !ips.includes(ip)) });
  const there = withEni(left, { ...target, ips: [...target.ips, ...ips].sort() });
  return done(there, { action: 'MigratePrivateIpAddress', ips }, ips.join(' '));
}

function assignExact(cloud: CloudTruth, eni: CloudEni, wanted: readonly string[]): CloudEffect {
  const taken = new Set([...cloud.enis.flatMap((one) => one.ips), ...cloud.foreign]);
  if (wanted.some((ip) => taken.has(ip))) return refused(cloud, 'ResourceInUse');
  if (eni.ips.length + wanted.length > CLOUD_LIMITS.ipsPerEni) return refused(cloud, 'LimitExceeded');
  const next = withEni(cloud, { ...eni, ips: [...eni.ips, ...wanted].sort() });
  return done(next, { action: 'AssignPrivateIpAddresses', ips: wanted }, wanted.join(' '));
}

function assign(cloud: CloudTruth, eni: CloudEni, intent: Intent, ips: readonly string[]): readonly CloudEffect[] {
  if (intent.ips !== undefined) return [assignExact(cloud, eni, intent.ips)];
  const count = intent.ipCount ?? 0;
  if (eni.ips.length + count > CLOUD_LIMITS.ipsPerEni) return [refused(cloud, 'InvalidParameterValue.LimitExceeded')];
  const choices = choose(freeIps(cloud, ips), count);
  if (choices.length === 0) return [refused(cloud, 'ResourceInsufficient.Subnet')];
  return choices.map((chosen) =>
    done(
      withEni(cloud, { ...eni, ips: [...eni.ips, ...chosen].sort() }),
      { action: 'AssignPrivateIpAddresses', ips: chosen },
      chosen.join(' '),
    ),
  );
}

function attachResult(eni: CloudEni): IntentResult {
  return { action: 'AttachNetworkInterface', eni: seenEni(eni) };
}

/** What a sweep sees of a node: everything, as it is. What is on another instance is another node's. */
export function sightOf(cloud: CloudTruth, instanceId: string = INSTANCE_ID): CloudSnapshot {
  const enis = cloud.enis.map((eni): ObservedEni => {
    const isOthers = (eni.instanceId ?? INSTANCE_ID) !== instanceId;
    return isOthers ? { ...seenEni(eni), isForeign: true, isOthers } : seenEni(eni);
  });
  return { enis: new Map(enis.map((eni) => [eni.eniID, eni])), isComplete: true };
}

/** Describes an ENI as the cloud does. */
export function seenEni(eni: CloudEni): ObservedEni {
  const number = Number(eni.eniId.slice('eni-'.length));
  const hex = number.toString(16).padStart(8, '0');
  return {
    eniID: eni.eniId,
    mac: `02:00:${hex.match(/../g)?.join(':')}`,
    name: eni.name,
    primaryIP: `10.0.${100 + ((number >> 8) % 100)}.${number & 0xff}`,
    subnetID: SUBNET_ID,
    subnetCIDR: SUBNET_CIDR,
    gateway: '10.0.0.1',
    state: 'AVAILABLE',
    ...(eni.isAttached ? { instanceID: eni.instanceId ?? INSTANCE_ID, deviceIndex: 1 } : {}),
    securityGroups: [],
    ips: eni.ips,
    pendingIps: [],
  };
}

/** Addresses of the subnet that nobody has. */
export function freeIps(cloud: CloudTruth, ips: readonly string[]): readonly string[] {
  const taken = new Set([...cloud.enis.flatMap((eni) => eni.ips), ...cloud.foreign]);
  return ips.filter((ip) => !taken.has(ip));
}

/** Every way to take `count` of the given, in their order. */
function choose(from: readonly string[], count: number): readonly (readonly string[])[] {
  if (count === 0) return [[]];
  return from.flatMap((ip, i) => choose(from.slice(i + 1), count - 1).map((rest) => [ip, ...rest]));
}

function withEni(cloud: CloudTruth, changed: CloudEni): CloudTruth {
  return { ...cloud, enis: cloud.enis.map((eni) => (eni.eniId === changed.eniId ? changed : eni)) };
}

function done(cloud: CloudTruth, result: IntentResult, words: string): CloudEffect {
  return { cloud, answer: { kind: 'done', result }, words };
}

function refused(cloud: CloudTruth, code: string): CloudEffect {
  return { cloud, answer: { kind: 'refused', code }, words: `refused, ${code}` };
}
