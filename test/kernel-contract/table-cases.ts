import { isNftError } from '../../dataplane/nft-error.ts';
import { nftDeleteCommands, nftReplaceCommands } from '../../dataplane/nft-replace.ts';
import { observeNft } from '../../dataplane/observe.ts';
import { planNode } from '../../dataplane/plan-node.ts';
import type { MonitorEvent } from '../../netlink/monitor.ts';
import type { ContractCase } from './contract-case.ts';
import { makeNode } from './node.ts';

/** A table in the form in which nft lists it. */
const table = (...chains: readonly string[]): string => `table inet tke_eni {\n${chains.join('\n')}}\n`;
const chain = (name: string, ...lines: readonly string[]): string =>
  `\tchain ${name} {\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n`;

const HOOK = 'type filter hook prerouting priority -150; policy accept;';
const FIRST = table(chain('a', 'iifgroup 1 drop'), chain('b', HOOK, 'iifgroup 2 accept'));

/** Our tables of nftables: their text is what they are. */
export const TABLE_CASES: readonly ContractCase[] = [
  {
    what: 'a table is listed as it was loaded; none is none',
    async run({ host: { nft }, finish }) {
      const none = await finish(nft.read());
      await finish(nft.load(FIRST));
      return [none, await finish(nft.read()), (await finish(nft.canonical(FIRST))) === FIRST];
    },
    sees: [undefined, FIRST, true],
  },
  {
    what: 'what is loaded once more is added to what is there, in the place of its chain',
    async run({ host: { nft }, finish }) {
      await finish(nft.load(FIRST));
      await finish(nft.load(table(chain('c'), chain('a', 'iifgroup 3 drop'))));
      return await finish(nft.read());
    },
    sees: table(chain('a', 'iifgroup 1 drop', 'iifgroup 3 drop'), chain('b', HOOK, 'iifgroup 2 accept'), chain('c')),
  },
  {
    what: 'a table is replaced whole, or its chains get new rules in place',
    async run({ host: { nft }, finish }) {
      const next = { text: table(chain('b', HOOK, 'iifgroup 5 accept'), chain('n', 'iifgroup 6 drop')) };
      const seen: unknown[] = [];
      await finish(nft.load(nftReplaceCommands({ text: FIRST })));
      await finish(nft.load(nftReplaceCommands(next, ['a'])));
      seen.push(await finish(nft.read()));
      await finish(nft.load(nftReplaceCommands({ text: FIRST })));
      seen.push((await finish(nft.read())) === FIRST);
      await finish(nft.load(nftDeleteCommands()));
      await finish(nft.load(nftDeleteCommands()));
      return [...seen, await finish(nft.read())];
    },
    sees: [table(chain('b', HOOK, 'iifgroup 5 accept'), chain('n', 'iifgroup 6 drop')), true, undefined],
  },
  {
    what: 'a transaction that is refused changes nothing',
    async run({ host: { nft }, finish }) {
      await finish(nft.load(FIRST));
      const codeOf = (commands: string) =>
        finish(
          nft.load(commands).then(
            () => 'ok',
            (error: unknown) => (isNftError(error) ? error.code : 'another error'),
          ),
        );
      return [
        await codeOf('flush table inet tke_eni\ndelete chain inet tke_eni none\n'),
        await codeOf('delete table inet tke_eni_flow\n'),
        (await finish(nft.read())) === FIRST,
      ];
    },
    sees: ['NFT_REFUSED', 'NFT_REFUSED', true],
  },
  {
    what: 'a transaction is told once, with the process whose it was',
    async run({ host, finish }) {
      using monitor = host.monitor({ groups: ['nftables'] });
      await finish(host.nft.load(FIRST));
      await finish(host.nft.load('flush chain inet tke_eni a\ndelete chain inet tke_eni a\n'));
      const events: MonitorEvent[] = [];
      const read = async (): Promise<void> => {
        for await (const event of monitor) if (events.push(event) === 2) break;
      };
      await finish(read());
      const [one, other] = events;
      if (one?.kind !== 'nftables' || other?.kind !== 'nftables') return events;
      return [
        one.process,
        other.process,
        (other.generation ?? 0) - (one.generation ?? 0),
        one.pid !== other.pid,
        (one.pid ?? 0) > 0,
      ];
    },
    sees: ['nft', 'nft', 1, true, true],
  },
  {
    what: 'the table of a plan is found as planned when it was loaded, and as altered by a line that is gone',
    async run(machine) {
      const node = makeNode(machine);
      const { finish } = machine;
      const text = planNode(node.network, node.enis, []).nft?.text ?? '';
      const states = async () => {
        const { text: found, former, restore } = await finish(observeNft(node.kernel, text));
        return [found === text, former, restore !== undefined];
      };
      const none = await states();
      await finish(node.kernel.nft.load(text));
      const planned = await states();
      await finish(node.kernel.nft.load('flush chain inet tke_eni prerouting\n'));
      const altered = await states();
      const add = (name: string) => finish(node.kernel.nft.load(`table inet tke_eni {\n\tchain ${name} {\n\t}\n}\n`));
      await add('via_4099');
      const former = await states();
      await add('guest');
      return { none, planned, altered, former, guest: await states() };
    },
    sees: {
      none: [false, undefined, false],
      planned: [true, undefined, true],
      altered: [false, [], true],
      former: [false, ['via_4099'], true],
      guest: [false, undefined, true],
    },
  },
];
