// Long because it boots an emulated machine: the kernel of this one may have no flowtables.
import test, { type ExecutionContext } from 'ava';
import { createTempDir } from '../support/temp-dir.ts';
import { findGuestKernel, runGuest } from './run-guest.ts';

const guest = findGuestKernel();
const GUEST_MS = 8 * 60_000;
const BOTH = [true, true];

type Seen = ReadonlyMap<unknown, unknown>;

if (guest === undefined) {
  test.skip('a flowtable in a guest (set GUEST_KERNEL to a vmlinuz and GUEST_MODULES to the folder of its modules)', () => {});
} else {
  test('a flowtable in a guest: follows flows of a Pod, ends with its table and its link, and leaves nothing', async (t) => {
    t.timeout(GUEST_MS + 60_000);
    const folder = createTempDir('guest');
    t.teardown(folder.close);
    const { console, reports, code } = await runGuest(
      guest,
      { script: 'test/guest/flowtable-scene.ts' },
      folder.path,
      GUEST_MS,
    );
    t.is(code, 0, console);
    const seen = new Map(reports.map((one) => [one['name'], one['seen']]));
    t.is(seen.get('try'), '');
    t.deepEqual(seen.get('first'), ['flowtable'], 'devices of Pods');
    t.deepEqual(seen.get('second'), [], 'the plan is idempotent');
    const links = seen.get('links') as { readonly read: readonly string[]; readonly planned: readonly string[] };
    t.is(links.read.length, 5, 'what explain and graph read');
    t.deepEqual(links.read, links.planned);
    assertFollowed(t, seen);
    assertKinds(t, seen, 'compact');
    assertKinds(t, seen, 'per-pod');
    const exchange = [...BOTH, ...BOTH, ...BOTH, ...BOTH];
    t.deepEqual(seen.get('switched-off'), { followed: BOTH, beLiberal: '0', exchange }, 'nothing of it is invalid');
    assertLinks(t, seen);
    t.deepEqual(seen.get('off'), { operations: ['flowtable'], tables: 'table inet tke_eni\ntable inet others\n' });
    t.deepEqual(seen.get('uninstalled'), {
      before: 'table inet tke_eni\ntable inet others\ntable inet tke_eni_flows\n',
      tables: 'table inet others\n',
      hasFailed: false,
    });
    logRates(t, seen.get('rates') as Rates);
  });
}

function assertFollowed(t: ExecutionContext, seen: Seen): void {
  t.deepEqual(seen.get('new'), { exchange: BOTH, isOffloaded: false });
  t.deepEqual(seen.get('assured'), { exchange: [...BOTH, ...BOTH], isOffloaded: true });
  t.deepEqual(seen.get('forged'), { forged: false, own: true });
  t.deepEqual(seen.get('denied'), { exchange: BOTH }, 'a rule of others holds for new flows only');
  t.deepEqual(seen.get('ended'), { exchange: [false, true] }, 'it denies one direction');
  t.deepEqual(seen.get('allowed'), { exchange: [...BOTH, ...BOTH], isOffloaded: true });
}

const TCP = ['tcp', 'tcp-reset', 'tcp-v6', 'tcp-service', 'tcp-masqueraded'];
const KINDS = ['udp-v6', 'udp-pods', 'udp-service', 'udp-masqueraded', ...TCP];
/** Seconds that connection tracking keeps a connection after FIN, and after RST. @see nf_conntrack_proto_tcp.c */
const [TIME_WAIT_S, CLOSE_S] = [120, 10];

function assertKinds(t: ExecutionContext, seen: Seen, mode: 'compact' | 'per-pod'): void {
  const exchange = Object.fromEntries(KINDS.map((kind) => [kind, BOTH]));
  const isFollowed = Object.fromEntries(KINDS.map((kind) => [kind, true]));
  t.deepEqual(seen.get(`kinds-${mode}`), { exchange, isOffloaded: isFollowed });
  t.deepEqual(seen.get(`denied-${mode}`), { exchange, isOffloaded: isFollowed }, 'followed past a rule that drops all');
  for (const kind of TCP) {
    const end = seen.get(`end-${kind}-${mode}`) as { readonly isOffloaded: boolean; readonly leftS: number };
    t.false(end.isOffloaded, `${kind}: its last packets take the way of the kernel`);
    t.true(end.leftS <= (kind === 'tcp-reset' ? CLOSE_S : TIME_WAIT_S), `${kind}: ${end.leftS} s`);
  }
}

function assertLinks(t: ExecutionContext, seen: Seen): void {
  t.like(seen.get('many'), { operations: [], foreign: 1, overruns: 0 }, 'only the table of others is not ours');
  t.like(seen.get('before'), { isOffloaded: true });
  t.deepEqual(seen.get('deleted'), { isOffloaded: false, isDevice: false });
}

type Rates = readonly { readonly isOffloaded: boolean; readonly perSecond: number }[];

/** What an emulated machine forwards is a weak figure: its processor weighs instructions otherwise than a real one. */
function logRates(t: ExecutionContext, rates: Rates): void {
  const [on, off] = [true, false].map((isOffloaded) =>
    rates.filter((rate) => rate.isOffloaded === isOffloaded).map(({ perSecond }) => perSecond),
  );
  t.log(
    `figure: UDP packets a second in an emulated guest, with a flowtable ${on?.join(', ')}, without ${off?.join(', ')}`,
  );
}
