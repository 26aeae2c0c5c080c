import { compareTexts } from '../../runtime/compare-texts.ts';

/** What is known of the VPC of a Node that names an instance. */
export type VpcWitness = {
  /** When the Node was created, RFC 3339. */
  readonly createdAt: string;
  /** The VPC of its instance as the cloud described it; undefined: it did not. */
  readonly describedIn: string | undefined;
  /** Whether the cloud has yet to answer, or failed to. */
  readonly isUnanswered: boolean;
  /** Whether the Node gets the annotation of what was described, and has been initialised. */
  readonly isAnnotated: boolean;
  /** The VPC in that annotation, which its kubelet may have written. */
  readonly seenIn: string | undefined;
};

/** The VPC of the cluster; `isCertain`: no answer that is missing can change it. */
type VpcDecision = { readonly vpcId: string | undefined; readonly isCertain: boolean };

/**
 * Decides the VPC of a cluster without --vpc-id. The one that was found stays while an instance in it is described; a process
 * that has found none begins with that of more than half of the annotations. Otherwise it is the VPC of most described
 * instances, and while answers have failed only one that those cannot outvote.
 * @param before what this process found, with certainty
 */
export function decideVpc(before: string | undefined, witnesses: readonly VpcWitness[]): VpcDecision {
  const votes = witnesses.flatMap(({ describedIn: vpcId, createdAt }) =>
    vpcId === undefined ? [] : [{ vpcId, createdAt }],
  );
  const start = before ?? findSeen(witnesses);
  const countOf = (id?: string): number => votes.filter(({ vpcId }) => vpcId === id).length;
  if (start !== undefined && (votes.length === 0 || countOf(start) > 0))
    return { vpcId: start, isCertain: votes.length > 0 };
  const first = findVpc('', votes);
  const second = findVpc(
    '',
    votes.filter(({ vpcId }) => vpcId !== first),
  );
  const missing = witnesses.filter(({ describedIn }) => describedIn === undefined);
  const isCertain = missing.length === 0 || countOf(first) > missing.length + countOf(second);
  if (!isCertain && (start !== undefined || missing.some(({ isUnanswered }) => isUnanswered)))
    return { vpcId: start, isCertain: false };
  return { vpcId: first, isCertain: isCertain && first !== undefined };
}

/** One instance alone may be one that a single kubelet made up. */
const MIN_CONTRADICTING = 2;

/**
 * Returns the VPC of most instances while they contradict --vpc-id: not one that is described is in it. That begins with two
 * of them, when the cloud has answered about all; it lasts until one is in it, or none is described.
 * @param before what this returned last
 */
export function findContradiction(
  configured: string,
  before: string | undefined,
  witnesses: readonly VpcWitness[],
): string | undefined {
  const votes = witnesses.flatMap(({ describedIn: vpcId, createdAt }) =>
    vpcId === undefined ? [] : [{ vpcId, createdAt }],
  );
  if (votes.length === 0 || votes.some(({ vpcId }) => vpcId === configured)) return undefined;
  const isCertain = votes.length >= MIN_CONTRADICTING && !witnesses.some(({ isUnanswered }) => isUnanswered);
  return isCertain ? findVpc('', votes) : before;
}

/** A majority of those that have the annotation would be one kubelet's where no other Node has it. */
function findSeen(witnesses: readonly VpcWitness[]): string | undefined {
  const annotated = witnesses.filter(({ isAnnotated }) => isAnnotated);
  const first = [...Map.groupBy(annotated, ({ seenIn }) => seenIn)].find(
    ([, its]) => its.length > annotated.length / 2,
  );
  return first?.[0];
}

/** The VPC of an instance of a Node, and when the Node was created, RFC 3339. */
type VpcVote = { readonly vpcId: string; readonly createdAt: string };

/**
 * Finds the VPC of the cluster: the configured one, else that of most instances, and of two with as many the one of the older
 * Node. So no Node that joins, whatever it says, takes it from the others. Undefined: unknown.
 */
export function findVpc(configured: string, votes: Iterable<VpcVote>): string | undefined {
  if (configured !== '') return configured;
  const [first] = [...Map.groupBy(votes, ({ vpcId }) => vpcId)]
    .map(([vpcId, its]) => ({
      vpcId,
      count: its.length,
      createdAt: its.map(({ createdAt }) => createdAt).toSorted()[0] ?? '',
    }))
    .toSorted((a, b) => b.count - a.count || compareTexts(a.createdAt, b.createdAt) || compareTexts(a.vpcId, b.vpcId));
  return first?.vpcId;
}

/** What to do while the VPC of the cluster is not known, for people; the end of a sentence. */
export const VPC_CURE = 'set --vpc-id, or let cloud-node-controller find the instances of Nodes';
