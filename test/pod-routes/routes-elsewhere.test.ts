import test from 'ava';
import { classifyError } from '../../cloud/classify-error.ts';
import { RoutesElsewhere } from '../../pod-routes/routes-elsewhere.ts';
import { silentLogger } from '../../runtime/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const CONTEXT = { priority: 'warm', owner: 'routes', signal: new AbortController().signal } as const;
const WRONG = { actualId: 'vpc-b', message: 'it is vpc-b' };

/** Places that have a route each; `codes` are the errors of the next reads. */
function openElsewhere(codes: (string | undefined)[] = [], ...tables: readonly string[]) {
  const clock = new VirtualClock();
  const routeOf = (place: string) => [
    { routeId: place, cidr: '172.16.1.0/24', gatewayIp: '10.0.0.1', description: '' },
  ];
  const failNow = (action: string): void => {
    const code = codes.shift();
    if (code !== undefined) throw classifyError({ code, action, text: '' });
  };
  const elsewhere = new RoutesElsewhere({
    routes: {
      list: async (place) => {
        failNow('DescribeGlobalRoutes');
        return { routes: routeOf(place), isConsistent: true };
      },
      listAll: async (vpcId) => {
        failNow('DescribeRouteTables');
        return new Map(['rtb-1', 'rtb-2'].map((place) => [place, routeOf(`${place} of ${vpcId}`)]));
      },
    },
    ...(tables.length === 0 ? {} : { tables }),
    ...{ clock, log: silentLogger },
  });
  const read = async (vpcFault?: typeof WRONG) => {
    const found = await elsewhere.read('vpc-a', vpcFault, CONTEXT);
    return found === undefined ? undefined : [...found.values()].flat().map(({ routeId }) => routeId);
  };
  return { clock, read };
}

test('RoutesElsewhere: the tables that are not kept here, of the VPC that is the right one', async (t) => {
  const { read } = openElsewhere([], 'rtb-1');
  t.deepEqual(await read(), ['rtb-2 of vpc-a']);
  t.deepEqual(await read(WRONG), ['rtb-2 of vpc-b']);
});

test('RoutesElsewhere: routes of the VPC itself are elsewhere only when the VPC is wrong', async (t) => {
  const { read } = openElsewhere();
  t.deepEqual(await read(), []);
  t.deepEqual(await read(WRONG), ['vpc-b']);
});

test('RoutesElsewhere: a read that fails says nothing, one that is forbidden shows no route; both are tried again', async (t) => {
  const { read, clock } = openElsewhere(['InternalError', 'UnauthorizedOperation'], 'rtb-1');
  t.is(await read(), undefined);
  t.is(await read(), undefined, 'not more than once a minute');
  await clock.advance(60_000);
  t.deepEqual(await read(), []);
  await clock.advance(60_000);
  t.deepEqual(await read(), ['rtb-2 of vpc-a']);
});
