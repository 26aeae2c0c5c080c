import test from 'ava';
import { compareTables, nftReplaceCommands } from '../../dataplane/nft-replace.ts';

// As nft 1.0.6 lists: `nft -n -s list table inet tke_eni`.
const listing = (...chains: readonly string[]): string => `table inet tke_eni {\n${chains.join('\n')}}\n`;
const PREROUTING =
  '\tchain prerouting {\n\t\ttype filter hook prerouting priority -150; policy accept;\n\t\tiifgroup 4003 goto eni_4003\n\t}\n';
const ENI_3 = '\tchain eni_4003 {\n\t\tmeta mark set 0x10000\n\t}\n';
const ENI_4 = '\tchain eni_4004 {\n\t}\n';

const WANTED = listing(ENI_3, PREROUTING);

const cases: readonly { readonly what: string; readonly present: string; readonly former?: readonly string[] }[] = [
  { what: 'another rule', present: listing(ENI_3.replace('0x10000', '0x20000'), PREROUTING), former: [] },
  { what: 'no chain at all', present: listing(), former: [] },
  { what: 'a chain of an ENI more', present: listing(ENI_3, ENI_4, PREROUTING), former: ['eni_4004'] },
  { what: 'one more with a hook', present: listing(PREROUTING.replace('prerouting', 'from_7')), former: ['from_7'] },
  { what: 'a chain of others', present: listing(ENI_3, ENI_4.replace('eni_4004', 'drop'), PREROUTING) },
  { what: 'a chain whose name ends a command', present: listing(ENI_4.replace('eni_4004', 'eni_4004;x'), PREROUTING) },
  { what: 'another hook', present: listing(PREROUTING.replace('-150', '-149')) },
  { what: 'a hook that the wanted one lacks', present: listing(PREROUTING.replace('prerouting', 'eni_4003')) },
  { what: 'no hook where the wanted one has one', present: listing(ENI_3.replace('eni_4003', 'prerouting')) },
  { what: 'a comment of a chain', present: listing(ENI_3.replace('{\n', '{\n\t\tcomment "x"\n'), PREROUTING) },
  { what: 'flags of a chain', present: listing(PREROUTING.replace('accept;\n', 'accept;\n\t\tflags offload\n')) },
  {
    what: 'a comment that looks like a chain of ours',
    present: listing(ENI_3.replace('0x10000', '0x20000 comment "'), `${ENI_3}"\n`, PREROUTING),
  },
  { what: 'a table that sleeps', present: listing('\tflags dormant\n\n', PREROUTING) },
  { what: 'a set', present: listing('\tset s {\n\t\ttype ipv4_addr\n\t}\n', PREROUTING) },
];

for (const { what, present, former } of cases) {
  test(`compareTables: ${former === undefined ? 'the table has to go' : 'rules are replaced in place'}: ${what}`, (t) => {
    t.deepEqual(compareTables(present, WANTED), { isSame: false, ...(former && { former }) });
  });
}

test('compareTables: the order of chains is no difference, the order of rules is', (t) => {
  t.true(compareTables(WANTED, WANTED).isSame);
  t.true(compareTables(listing(PREROUTING, ENI_3), WANTED).isSame);
  t.true(compareTables(listing(`${PREROUTING}\n`, ENI_3), WANTED).isSame);
  const twoRules = ENI_3.replace('\t}', '\t\taccept\n\t}');
  const turned = ENI_3.replace('{\n', '{\n\t\taccept\n');
  t.false(compareTables(listing(twoRules, PREROUTING), listing(turned, PREROUTING)).isSame);
});

test('nftReplaceCommands: chains stay if they can', (t) => {
  const table = { text: 'table inet tke_eni {\n}\n' };
  const inPlace =
    'table inet tke_eni\nadd chain inet tke_eni eni_4004\nflush table inet tke_eni\ndelete chain inet tke_eni eni_4004\n';
  t.is(nftReplaceCommands(table, ['eni_4004']), inPlace + table.text);
  t.is(nftReplaceCommands(table), `table inet tke_eni\ndelete table inet tke_eni\n${table.text}`);
});
