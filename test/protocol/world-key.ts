import type { PoolAddress } from '../../agent/pool/pool-state.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from '../../ipamd/decide/decision.ts';
import type { CloudTruth } from './cloud-truth.ts';
import { Namer, tokensOf } from './namer.ts';
import type { AgentSide, Call, Nec, World } from './world.ts';

/**
 * Names a state so that two with one name have the same future. Left out: what nothing is decided by (conditions, MACs,
 * times for people), and what is spent. Renamed: ids and addresses, in the order in which they occur; ENI ids, epochs and
 * times, which are compared for order, by their rank. Pods are told apart by their addresses alone.
 * Ids are only ever compared for equality. Addresses are too, but for ties: of two that are alike in all that a decision
 * looks at, it takes the one whose text comes first, and only one of the two ways is explored.
 * The answer is good until the next call.
 */
export function keyOfWorld(world: World): Int32Array {
  const namer = new Namer();
  addWorld(namer, world);
  const { backup, nec } = world;
  // Epochs grow by one: how far one is above the object's matters while the object's may reach it, which takes a restore.
  const lowest = backup?.status.supplyEpoch ?? (world.wasRestored ? nec.status.supplyEpoch : undefined);
  return namer.name(world.ipamd.epoch, lowest ?? Number.POSITIVE_INFINITY);
}

/** Adds what tells a world from another. */
function addWorld(namer: Namer, world: World): void {
  const { agent, ipamd, nec, backup } = world;
  namer.add(tokensOfTruth(world.cloud));
  namer.add(tokensOf(keyOfAnswers(world)));
  namer.add(tokensOfHead(nec));
  namer.add(tokensOfStatus(nec.status));
  namer.add(tokensOf('|'));
  if (backup !== undefined) namer.add(tokensOf(keyOfNec(backup)));
  namer.add(tokensOfPool(agent.pool));
  namer.add(tokensOfJournal(agent.journal));
  namer.add(tokensOfWrites(agent.writes));
  namer.add(
    tokensOf(`|${ipamd.write === undefined ? '' : `${keyOfNec(ipamd.write.next)}>${ipamd.write.call?.id ?? ''}`}`),
  );
  // A baseline that the agent has answered counts no more.
  const { baseline } = ipamd;
  if ((nec.spec.observedSupplyEpoch ?? 0) <= baseline.epoch) namer.add(tokensOf(`B@e${baseline.epoch}`));
  namer.add(tokensOf(`|${world.calls.map(keyOfCall).join(' ')}`));
  const resting = world.resting.map(({ ip, untilMs }) => `${ip}@t${untilMs}`);
  namer.add(
    tokensOf(`|${[...world.pods].sort().join()}+${world.left.pods}|${resting.join()}${world.wasRestored ? 'r' : ''}`),
  );
}

/** Remembers what was made of a part: parts are frozen and shared by many states. */
function cached<T extends object, R>(make: (value: T) => R): (value: T) => R {
  const known = new WeakMap<T, R>();
  return (value) => {
    const before = known.get(value);
    if (before !== undefined) return before;
    const made = make(value);
    known.set(value, made);
    return made;
  };
}

/** Answers that nobody can ask for any more are left out. */
function keyOfAnswers({ cloud, nec, backup, calls }: World): string {
  if (cloud.answers.size === 0) return '';
  const asked = [
    ...(nec.status.intents ?? []),
    ...(backup?.status.intents ?? []),
    ...calls.map(({ intent }) => intent),
  ];
  const tokens = new Set(asked.map(({ clientToken }) => clientToken ?? ''));
  const answers = [...cloud.answers]
    .filter(([token]) => tokens.has(token))
    .map(([token, answer]) => `${token}:${keyOfAnswer(answer)}`);
  return answers.sort().join();
}

const tokensOfTruth = cached(({ enis, foreign }: CloudTruth) => {
  const each = enis.map(({ eniId, name, isAttached, ips }) => `${eniId}${isAttached ? '+' : '-'}${name}:${ips.join()}`);
  return tokensOf(`${each.join(' ')} f${foreign.join()}`);
});

const keyOfAnswer = cached((answer: NonNullable<Call['answer']>): string => {
  if (answer.kind === 'refused') return answer.code;
  const { result } = answer;
  if ('ips' in result) return result.ips.join();
  return 'eni' in result ? `${result.eni.eniID}+${result.eni.ips.join()}` : 'done';
});

/** The object without its status. */
const keyOfHead = cached(({ spec, status, life }: Nec): string => {
  // An offer of an assignment that is no more is void for everybody.
  const ids = new Set((status.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map((one) => one.assignmentID)));
  const meant = (spec.releasableIPs ?? []).filter(({ assignmentID }) => ids.has(assignmentID));
  const offers = meant.map(({ ip, assignmentID }) => `${ip}~${assignmentID}~`);
  return `${life ?? ''}${spec.desiredRouteENIIP}@e${spec.observedSupplyEpoch ?? -1}[${offers.join()}]`;
});

const tokensOfHead = cached((nec: Nec) => tokensOf(keyOfHead(nec)));

function keyOfNec(nec: Nec): string {
  return keyOfHead(nec) + keyOfStatus(nec.status);
}

const keyOfStatus = cached((status: NodeEniConfigStatus): string => {
  const enis = (status.eniInfos ?? []).map((eni) => {
    const ips = (eni.addresses ?? []).map(
      ({ ip, assignmentID, state, claim }) => `${ip}~${assignmentID}~${state[0]}${markOf(claim)}`,
    );
    return `${eni.eniID}~${eni.name ?? ''}~${eni.state}${eni.draining === true ? 'd' : ''}~${eni.assignmentID ?? ''}~${eni.deviceIndex ?? ''}[${ips.join()}]`;
  });
  return `@e${status.supplyEpoch ?? 0} ${enis.join(' ')} {${(status.intents ?? []).map(keyOfIntent).join(' ')}}`;
});

/** Whose a kept address is. */
function markOf(claim: { readonly name: string; readonly uid?: string } | undefined): string {
  return claim === undefined ? '' : `*${claim.name}/${claim.uid ?? ''}`;
}

const tokensOfStatus = cached((status: NodeEniConfigStatus) => tokensOf(keyOfStatus(status)));

const keyOfIntent = cached((intent: Intent): string => {
  const { id, action, phase, leaderEpoch, resourceName, taskID, eniID, targetENIID, ips, ipCount, lastError } = intent;
  // What went wrong before the call was sent again is for people.
  const error = phase === 'Unclear' ? lastError?.code : undefined;
  const words = [
    id,
    action,
    phase,
    `@l${leaderEpoch}`,
    resourceName,
    taskID,
    eniID,
    targetENIID,
    ips?.join('+'),
    ipCount,
    error,
    intent.claim,
  ];
  return words.map((word) => word ?? '').join();
});

const keyOfRequest = cached(({ id, action, eniID, targetENIID, ips, ipCount }: Intent): string =>
  [id, action, eniID ?? '', targetENIID ?? '', ips?.join('+') ?? '', ipCount ?? ''].join(),
);

function keyOfCall({ intent, answer, isHeard }: Call): string {
  return `${keyOfRequest(intent)}${isHeard ? '!' : '?'}${answer === undefined ? '' : keyOfAnswer(answer)}`;
}

const tokensOfPool = cached(({ epoch, addresses, enis }: AgentSide['pool']) => {
  const each = [...enis.values()].map(({ eniId, serves, draining }) => `${eniId}${serves}${draining}`);
  return tokensOf(`|@e${epoch} ${[...addresses.values()].map(keyOfAddress).join(' ')} ${each.join()}`);
});

const tokensOfJournal = cached((journal: AgentSide['journal']) => {
  const leases = [...journal.leases.values()].flatMap(({ addresses, podUid }) =>
    addresses.map(({ ip, eniId, assignmentId }) => `${ip}~${eniId}~${assignmentId}${podUid}`),
  );
  const cooldowns = [...journal.cooldowns.values()].map(
    ({ ip, eniId, assignmentId, coolUntilMs }) => `${ip}~${eniId}~${assignmentId}~@t${coolUntilMs}`,
  );
  const offers = [...journal.offers.values()].map(({ ip, eniId, assignmentId }) => `${ip}~${eniId}~${assignmentId}`);
  const supply = journal.supply === undefined ? '' : keyOfSupply(journal.supply);
  return tokensOf(`|${leases.sort().join()};${cooldowns.sort().join()};${offers.sort().join()};${supply}`);
});

const tokensOfWrites = cached((writes: AgentSide['writes']) => {
  const each = writes.map(({ spec, stage, isHeard, toRestore, base }) => {
    const back = toRestore.map(({ ip }) => ip).join();
    // Of one that landed only what its answer brings is to come; one that is guarded fits the object as it is or never.
    if (stage === 'applied') return `+${back}`;
    const listed = spec.releasable.map(({ ip, assignmentId }) => `${ip}~${assignmentId}~`);
    const on = base === undefined ? '' : keyOfNec(base);
    return `${isHeard ? '!' : '?'}${spec.desired}@e${spec.observedEpoch}[${listed.join()}]${back}${on}`;
  });
  return tokensOf(`|${each.join(' ')}`);
});

const keyOfAddress = cached((address: PoolAddress): string => {
  const { ip, eniId, assignmentId, state, supplyState, offered, next, coolUntilMs, freedAtMs, claim } = address;
  const times = `${coolUntilMs === undefined ? '' : `@t${coolUntilMs}`}/${freedAtMs === undefined ? '' : `@t${freedAtMs}`}`;
  const later = next === undefined ? '' : `${next.eniId}~${next.assignmentId}~${next.supplyState}${markOf(next.claim)}`;
  return `${ip}~${eniId}~${assignmentId}~${state}${supplyState}${offered ? 'o' : ''}${later}${times}${markOf(claim)}`;
});

const keyOfSupply = cached(({ epoch, enis }: NonNullable<AgentSide['journal']['supply']>): string => {
  const each = enis.map((eni) => {
    const ips = eni.addresses.map(
      ({ ip, assignmentId, state, claim }) => `${ip}~${assignmentId}~${state[0]}${markOf(claim)}`,
    );
    return `${eni.eniId}${eni.attached ? '+' : '-'}${eni.draining ? 'd' : ''}${ips.join()}`;
  });
  return `@e${epoch} ${each.join(' ')}`;
});
