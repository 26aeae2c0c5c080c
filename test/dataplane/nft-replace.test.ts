import test from 'ava';
import { formerChains, nftReplaceCommands } from '../../dataplane/nft-replace.ts';

// As nft 1.0.6 lists: `nft -n -s list table inet tke_eni`.
const listing = (...chains: readonly string[]): string => `table inet tke_eni {\n${chains.join('\n')}}\n`;
const PREROUTING =
  '\tchain prerouting {\n\t\ttype filter hook prerouting priority -150; policy accept;\n\t\tiifgroup 4003 goto eni_4003\n\t}\n';
const ENI_3 = '\tchain eni_4003 {\n\t\tmeta mark set 0x10000\n\t}\n';
const ENI_4 = '\tchain eni_4004 {\n\t}\n';

const cases: readonly { readonly what: string; readonly present: string; readonly former?: readonly string[] }[] = [
  { what: 'the same chains', present: listing(ENI_3, PREROUTING), former: [] },
  { what: 'none at all', present: listing(), former: [] },
  { what: 'one more', present: listing(ENI_3, ENI_4, PREROUTING), former: ['eni_4004'] },
  { what: 'one more with a hook', present: listing(PREROUTING.replace('chain prerouting', 'chain x')), former: ['x'] },
  { what: 'another hook', present: listing(PREROUTING.replace('-150', '-149')) },
  { what: 'a hook that the wanted one lacks', present: listing(PREROUTING.replace('prerouting', 'eni_4003')) },
  { what: 'no hook where the wanted one has one', present: listing(ENI_3.replace('eni_4003', 'prerouting')) },
  { what: 'a comment before the hook', present: listing(PREROUTING.replace('\t\ttype', '\t\tcomment "x"\n\t\ttype')) },
  { what: 'a table that sleeps', present: listing('\tflags dormant', PREROUTING) },
  { what: 'a set', present: listing('\tset s {\n\t\ttype ipv4_addr\n\t}\n', PREROUTING) },
];

for (const { what, present, former } of cases) {
  test(`formerChains: ${former === undefined ? 'the table has to go' : 'rules are replaced in place'}: ${what}`, (t) => {
    t.deepEqual(formerChains(present, listing(ENI_3, PREROUTING)), former);
  });
}

test('nftReplaceCommands: chains stay if they can', (t) => {
  const table = { text: 'table inet tke_eni {\n}\n' };
  const inPlace = 'table inet tke_eni\nflush table inet tke_eni\ndelete chain inet tke_eni eni_4004\n';
  t.is(nftReplaceCommands(table, ['eni_4004']), inPlace + table.text);
  t.is(nftReplaceCommands(table), `table inet tke_eni\ndelete table inet tke_eni\n${table.text}`);
});
