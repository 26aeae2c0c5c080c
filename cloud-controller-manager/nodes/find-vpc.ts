import { compareTexts } from '../../runtime/compare-texts.ts';

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
