import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { buildOutline } from '../../../inspection/model/build-outline.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';

/** Checks that our nftables table exists, with a chain for each ENI. */
export const NFT_CHECK: Check = {
  id: 'nft',
  scope: 'the nftables table inet tke_eni is there, with a chain for each ENI',
  finds: ['nft-table-missing', 'nft-table-changed'],
  evaluate: ({ node }) =>
    whenKnown(node.host.nft, ({ ourTable }) => {
      const { enis } = buildOutline(node);
      const present = enis.filter(({ link }) => link !== undefined);
      const facts = ifKnown(node.agent);
      const planned = facts === undefined ? undefined : ifKnown(facts.node)?.node;
      if (planned?.nftables === false) return skipped('the agent works without nftables on this node');
      if (present.length === 0) return skipped('no ENI is here that needs it');
      const fix = ['tke-eni repair', 'systemctl status nftables firewalld'];
      if (ourTable === undefined) {
        const what = `there is no nftables table inet tke_eni, for ${present.length} ENIs`;
        return done([finding('nft-table-missing', { what, fix, subjects: ['nft:tke_eni'] })]);
      }
      const without = present.filter(({ table }) => !hasRules(ourTable, `eni_${table}`));
      const what = `of the table inet tke_eni the chains ${without.map(({ table }) => `eni_${table}`).join(', ')} are gone or empty`;
      return done(
        without.length === 0 ? [] : [finding('nft-table-changed', { what, fix, subjects: ['nft:tke_eni'] })],
        [`chains for ${present.length} ENIs`],
      );
    }),
};

function hasRules(table: string, chain: string): boolean {
  const start = table.search(new RegExp(`chain ${chain} \\{`));
  if (start < 0) return false;
  const body = table.slice(table.indexOf('{', start) + 1);
  return /\S/.test(body.slice(0, body.search(/^\t?\}/m)));
}
