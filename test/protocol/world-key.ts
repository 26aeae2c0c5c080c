import type { PoolAddress } from '../../agent/pool/pool-state.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from '../../ipamd/nec/decision.ts';
import type { CloudTruth } from './cloud-truth.ts';
import type { AgentSide, Call, Nec, World } from './world.ts';

/**
 * Names a state so that two with one name have the same future. Left out: what nothing is decided by (conditions, MACs,
 * times for people). Renamed: ids, which are only ever compared for equality, in the order in which they occur; ENI ids,
 * epochs and times, which are compared for order, by their rank. Pods are told apart by their addresses alone.
 */
export function keyOfWorld(world: World): string {
  const { left } = world;
  const parts = [
    keyOfCloud(world),
    keyOfNec(world.nec),
    world.backup === undefined ? '' : keyOfNec(world.backup),
    keyOfAgent(world.agent),
    world.ipamd.write === undefined ? '' : `${keyOfNec(world.ipamd.write.next)}>${world.ipamd.write.call?.id ?? ''}`,
    world.calls.map(keyOfCall).join(' '),
    [...world.pods].sort().join(),
    world.resting.map(({ ip, untilMs }) => `${ip}@t${untilMs}`).join(),
    `${left.crashes}.${left.faults}.${left.restores}.${left.tenants}.${left.pods}.${world.wasRestored ? 1 : 0}`,
  ];
  // Epochs grow by one: how far apart two are matters while the object's may be the lower one, which a restore makes it.
  const mayGoBack = left.restores > 0 || world.backup !== undefined || world.wasRestored;
  return rename(parts.join('|'), world.ipamd.epoch, mayGoBack ? EPOCH_GAP : 1);
}

const VOLATILE = /([0-9a-f]{16})|(10\.0\.0\.\d+)|eni-(\d+)|@e(-?\d+)|@t([\d.]+)|@l(\d+)/g;

function rename(raw: string, leader: number, epochGap: number): string {
  const enis = new Set<number>();
  const epochs = new Set<number>();
  const times = new Set<number>();
  for (const [, , , eni, epoch, time] of raw.matchAll(VOLATILE)) {
    if (eni !== undefined) enis.add(Number(eni));
    else if (epoch !== undefined) epochs.add(Number(epoch));
    else if (time !== undefined) times.add(Number(time));
  }
  const ids = new Map<string, number>();
  const ips = new Map<string, number>();
  const [eniRank, epochRank, timeRank] = [ranks(enis, 1), ranks(epochs, epochGap), ranks(times, 1)];
  return raw.replace(
    VOLATILE,
    (_, id?: string, ip?: string, eni?: string, epoch?: string, time?: string, by?: string) => {
      if (eni !== undefined) return `e${eniRank.get(Number(eni))}`;
      if (epoch !== undefined) return `@${epochRank.get(Number(epoch))}`;
      if (time !== undefined) return `t${timeRank.get(Number(time))}`;
      // Of an intent's epoch only one thing counts: whether it is the leader's own.
      if (by !== undefined) return Number(by) === leader ? 'o' : 'i';
      if (ip !== undefined) return nth(ips, ip, 'a');
      return nth(ids, id ?? '', '#');
    },
  );
}

function nth(seen: Map<string, number>, name: string, sign: string): string {
  const known = seen.get(name) ?? seen.size;
  seen.set(name, known);
  return `${sign}${known}`;
}

/** More than an object's epoch grows by in one write. */
const EPOCH_GAP = 4;

/** Ranks numbers by size; gaps between neighbours are kept up to `gap`. */
function ranks(numbers: ReadonlySet<number>, gap: number): ReadonlyMap<number, number> {
  const rank = new Map<number, number>();
  let [last, at] = [0, 0];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    if (rank.size > 0) at += Math.min(number - last, gap);
    rank.set(number, at);
    last = number;
  }
  return rank;
}

/** Remembers the key of a part: parts are frozen and shared by many states. */
function cached<T extends object>(make: (value: T) => string): (value: T) => string {
  const known = new WeakMap<T, string>();
  return (value) => {
    const before = known.get(value);
    if (before !== undefined) return before;
    const made = make(value);
    known.set(value, made);
    return made;
  };
}

/** Answers that nobody can ask for any more are left out. */
function keyOfCloud({ cloud, nec, backup, calls }: World): string {
  if (cloud.answers.size === 0) return keyOfTruth(cloud);
  const asked = [
    ...(nec.status.intents ?? []),
    ...(backup?.status.intents ?? []),
    ...calls.map(({ intent }) => intent),
  ];
  const tokens = new Set(asked.map(({ clientToken }) => clientToken ?? ''));
  const answers = [...cloud.answers]
    .filter(([token]) => tokens.has(token))
    .map(([token, answer]) => `${token}:${keyOfAnswer(answer)}`);
  return `${keyOfTruth(cloud)} ${answers.sort().join()}`;
}

const keyOfTruth = cached(({ enis, foreign }: CloudTruth) => {
  const each = enis.map(({ eniId, name, isAttached, ips }) => `${eniId}${isAttached ? '+' : '-'}${name}:${ips.join()}`);
  return `${each.join(' ')} f${foreign.join()}`;
});

const keyOfAnswer = cached((answer: NonNullable<Call['answer']>): string => {
  if (answer.kind === 'refused') return answer.code;
  const { result } = answer;
  if ('ips' in result) return result.ips.join();
  return 'eni' in result ? `${result.eni.eniID}+${result.eni.ips.join()}` : 'done';
});

const keyOfNec = cached(({ spec, status, life }: Nec): string => {
  // An offer of an assignment that is no more is void for everybody.
  const ids = new Set((status.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map((one) => one.assignmentID)));
  const meant = (spec.releasableIPs ?? []).filter(({ assignmentID }) => ids.has(assignmentID));
  const offers = meant.map(({ ip, assignmentID }) => `${ip}~${assignmentID}~`);
  return `${life ?? ''}${spec.desiredRouteENIIP}@e${spec.observedSupplyEpoch ?? -1}[${offers.join()}]${keyOfStatus(status)}`;
});

const keyOfStatus = cached((status: NodeEniConfigStatus): string => {
  const enis = (status.eniInfos ?? []).map((eni) => {
    const ips = (eni.addresses ?? []).map(({ ip, assignmentID, state }) => `${ip}~${assignmentID}~${state[0]}`);
    return `${eni.eniID}~${eni.name ?? ''}~${eni.state}${eni.draining === true ? 'd' : ''}~${eni.assignmentID ?? ''}~${eni.deviceIndex ?? ''}[${ips.join()}]`;
  });
  return `@e${status.supplyEpoch ?? 0} ${enis.join(' ')} {${(status.intents ?? []).map(keyOfIntent).join(' ')}}`;
});

const keyOfIntent = cached((intent: Intent): string => {
  const { id, action, phase, leaderEpoch, resourceName, taskID, eniID, ips, ipCount, lastError } = intent;
  // What went wrong before the call was sent again is for people.
  const error = phase === 'Unclear' ? lastError?.code : undefined;
  const words = [id, action, phase, `@l${leaderEpoch}`, resourceName, taskID, eniID, ips?.join('+'), ipCount, error];
  return words.map((word) => word ?? '').join();
});

const keyOfRequest = cached(({ id, action, eniID, ips, ipCount }: Intent): string =>
  [id, action, eniID ?? '', ips?.join('+') ?? '', ipCount ?? ''].join(),
);

function keyOfCall({ intent, answer, isHeard }: Call): string {
  return `${keyOfRequest(intent)}${isHeard ? '!' : '?'}${answer === undefined ? '' : keyOfAnswer(answer)}`;
}

const keyOfAgent = cached(({ pool, journal, writes }: AgentSide): string => {
  const enis = [...pool.enis.values()].map(({ eniId, serves, draining }) => `${eniId}${serves}${draining}`);
  const leases = [...journal.leases.values()].flatMap(({ addresses }) =>
    addresses.map(({ ip, eniId, assignmentId }) => `${ip}~${eniId}~${assignmentId}`),
  );
  const cooldowns = [...journal.cooldowns.values()].map(
    ({ ip, eniId, assignmentId, coolUntilMs }) => `${ip}~${eniId}~${assignmentId}~@t${coolUntilMs}`,
  );
  const offers = [...journal.offers.values()].map(({ ip, eniId, assignmentId }) => `${ip}~${eniId}~${assignmentId}`);
  const each = writes.map(({ spec, stage, isHeard, toRestore, base }) => {
    const back = toRestore.map(({ ip }) => ip).join();
    // Of one that landed only what its answer brings is to come; one that is guarded fits the object as it is or never.
    if (stage === 'applied') return `+${back}`;
    const listed = spec.releasable.map(({ ip, assignmentId }) => `${ip}~${assignmentId}~`);
    const on = base === undefined ? '' : keyOfNec(base);
    return `${isHeard ? '!' : '?'}${spec.desired}@e${spec.observedEpoch}[${listed.join()}]${back}${on}`;
  });
  return [
    `@e${pool.epoch}`,
    [...pool.addresses.values()].map(keyOfAddress).join(' '),
    enis.join(),
    leases.sort().join(),
    cooldowns.sort().join(),
    offers.sort().join(),
    journal.supply === undefined ? '' : keyOfSupply(journal.supply),
    each.join(' '),
  ].join(';');
});

const keyOfAddress = cached((address: PoolAddress): string => {
  const { ip, eniId, assignmentId, state, standing, offered, next, coolUntilMs, freedAtMs } = address;
  const times = `${coolUntilMs === undefined ? '' : `@t${coolUntilMs}`}/${freedAtMs === undefined ? '' : `@t${freedAtMs}`}`;
  const later = next === undefined ? '' : `${next.eniId}~${next.assignmentId}~${next.standing}`;
  return `${ip}~${eniId}~${assignmentId}~${state}${standing}${offered ? 'o' : ''}${later}${times}`;
});

const keyOfSupply = cached(({ epoch, enis }: NonNullable<AgentSide['journal']['supply']>): string => {
  const each = enis.map((eni) => {
    const ips = eni.addresses.map(({ ip, assignmentId, state }) => `${ip}~${assignmentId}~${state[0]}`);
    return `${eni.eniId}${eni.attached ? '+' : '-'}${eni.draining ? 'd' : ''}${ips.join()}`;
  });
  return `@e${epoch} ${each.join(' ')}`;
});
