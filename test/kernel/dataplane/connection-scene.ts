import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import type { ConntrackMessage } from '../../../netlink/conntrack-message.ts';
import { type Ctnetlink, openCtnetlink } from '../../../netlink/ctnetlink.ts';
import { withNetns } from '../../../netlink/netns.ts';
import { IPS_CONFIRMED } from '../../../netlink/uapi/nfnetlink-conntrack.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';

/** A namespace whose connections are tracked. */
type ConnectionScene = {
  readonly ctnetlink: Ctnetlink;
  readonly test: TestNetns;
  run(...argv: readonly string[]): string;
  /** Adds entries, a line of options of conntrack(8) each. */
  load(lines: readonly string[]): void;
  /** Makes a connection of the namespace to itself, which lasts until the test ends. */
  connect(address: string): Promise<void>;
  /** All entries: those of the table are confirmed. */
  entries(): readonly ConntrackMessage[];
};

const CONNECTION = `
const net = require('node:net');
const server = net.createServer((end) => end.pipe(end)).listen(0, process.argv[1], () => {
  const client = net.connect(server.address().port, process.argv[1]);
  client.write('there');
  client.once('data', () => console.log('back'));
});`;

/** Makes one that ends with the test. */
export function openConnectionScene(t: ExecutionContext): ConnectionScene {
  const test = new TestNetns();
  const ctnetlink = withNetns(test.netns, () => openCtnetlink());
  t.teardown(() => {
    ctnetlink.close();
    test[Symbol.dispose]();
  });
  const inside = [`--net=/run/netns/${test.name}`, '--'];
  const exec = (input: string, argv: readonly string[]): string =>
    execFileSync('nsenter', [...inside, ...argv], { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
  test.ip('link set lo up');
  // Connections are tracked where somebody asks for their state.
  exec('table inet t { chain o { type filter hook output priority 0; ct state new accept; }; }', ['nft', '-f', '-']);
  return {
    ctnetlink,
    test,
    run: (...argv) => exec('', argv),
    // It opens /dev/stdin, which a socket, as node gives one to a child, cannot be.
    load: (lines) => void exec(`${lines.join('\n')}\n`, ['sh', '-c', 'cat | conntrack -R -']),
    connect: async (address) => {
      const child = spawn('nsenter', [...inside, process.execPath, '--eval', CONNECTION, address], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      t.teardown(() => child.kill('SIGKILL'));
      await once(child.stdout, 'data');
    },
    entries: () => [...ctnetlink.list({ status: IPS_CONFIRMED, statusMask: IPS_CONFIRMED })].flat(),
  };
}
