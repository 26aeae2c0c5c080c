import test from 'ava';
import { CallFailures, CONNECTION, describeCallFailure } from '../../kube/call-failures.ts';
import { KubeError, type KubeErrorCode } from '../../kube/kube-error.ts';
import { TOKEN_RIGHT } from '../../kube/track-rights.ts';

const UPDATE = 'update nodeeniconfigs';
const RBAC = 'nodeeniconfigs "n1" is forbidden: User "a" cannot update resource "nodeeniconfigs" in API group "x"';

function failureOf(code: KubeErrorCode, status?: number, text = 'no'): KubeError {
  return new KubeError({ code, request: 'PUT nodeeniconfigs/n1', text, ...(status === undefined ? {} : { status }) });
}

function createFailures() {
  const clock = { ms: 0, monotonicMs: () => clock.ms };
  const failures = new CallFailures(clock);
  return { clock, failures, settled: failures.settled, calls: () => failures.list().map(({ call }) => call) };
}

test('CallFailures: a refusal counts at once, since its first, until a good answer to that call', (t) => {
  const { clock, failures, settled, calls } = createFailures();
  settled(UPDATE, failureOf('FORBIDDEN', 403, RBAC));
  clock.ms = 90_000;
  settled(UPDATE, failureOf('FORBIDDEN', 403, RBAC));
  settled('get nodeeniconfigs', undefined);
  t.like(failures.list(), [{ call: UPDATE, kind: 'refused', sinceMs: 0, lastMs: 90_000, count: 2, status: 403 }]);
  const [failure] = failures.list();
  t.is(
    failure && describeCallFailure(failure, 90_000, 'tke-eni-agent'),
    `the API server refuses to update nodeeniconfigs (403 FORBIDDEN, since 90 s): ${RBAC}; grant "update nodeeniconfigs" to ClusterRole tke-eni-agent`,
  );
  settled(UPDATE, undefined);
  t.deepEqual(calls(), []);
});

test('CallFailures: what admission refuses is no right that a role lacks', (t) => {
  for (const [code, status, text] of [
    ['FORBIDDEN', 403, 'admission webhook "w" denied the request: not now'],
    ['INVALID', 422, 'ValidatingAdmissionPolicy "p" denied request: no'],
    ['INVALID', 400, 'admission webhook "w" denied the request'],
  ] as const) {
    const { failures, settled } = createFailures();
    settled(UPDATE, failureOf(code, status, text));
    settled(UPDATE, failureOf(code, status, text));
    const [failure] = failures.list();
    const line = failure && describeCallFailure(failure, 0, 'tke-eni-agent');
    t.regex(line ?? '', /^the API server refuses to update nodeeniconfigs .*admission webhooks and policies/i, text);
    t.notRegex(line ?? '', /grant/);
  }
});

test('CallFailures: a patch that was invalid once is no refusal', (t) => {
  const { settled, calls } = createFailures();
  settled('patch ciliumnodes/status', failureOf('INVALID', 422));
  t.deepEqual(calls(), []);
});

test('CallFailures: no answer at all is one failure, whatever was called, after half a minute', (t) => {
  const { clock, failures, settled, calls } = createFailures();
  const down = failureOf('UNAVAILABLE', undefined, 'connect ECONNREFUSED 10.0.0.1:6443');
  settled(UPDATE, down);
  t.deepEqual(calls(), []);
  t.is(failures.last(CONNECTION)?.text, 'connect ECONNREFUSED 10.0.0.1:6443');
  clock.ms = 31_000;
  settled('list pods', failureOf('TIMEOUT'));
  t.deepEqual(calls(), [CONNECTION]);
  settled('create events', failureOf('FORBIDDEN', 403, RBAC));
  t.deepEqual(calls(), ['create events'], 'a refusal is an answer');
});

test('CallFailures: a silent watch, and an aborted call, are no failures', (t) => {
  const { clock, settled, calls } = createFailures();
  for (clock.ms = 0; clock.ms < 600_000; clock.ms += 150_000) {
    settled('watch nodeeniconfigs', failureOf('TIMEOUT'));
    settled('get pods', new Error('aborted'));
  }
  t.deepEqual(calls(), []);
});

test('CallFailures: a webhook that cannot be called counts after half a minute', (t) => {
  for (const [code, status] of [
    ['UNAVAILABLE', 500],
    ['THROTTLED', 429],
    ['BAD_ANSWER', undefined],
    ['NOT_FOUND', 404],
  ] as const) {
    const { clock, settled, calls } = createFailures();
    settled(UPDATE, failureOf(code, status));
    t.deepEqual(calls(), [], code);
    clock.ms = 40_000;
    settled(UPDATE, failureOf(code, status));
    t.deepEqual(calls(), [UPDATE], code);
    settled(UPDATE, undefined);
    t.deepEqual(calls(), [], code);
  }
});

test('CallFailures: a token counts for all calls, and any answer to one shows that it is accepted', (t) => {
  const { settled, calls } = createFailures();
  settled('list pods', failureOf('UNAUTHORIZED', 401));
  settled(UPDATE, failureOf('UNAUTHORIZED', 401));
  t.deepEqual(calls(), [TOKEN_RIGHT]);
  settled('get nodes', undefined);
  t.deepEqual(calls(), []);
});

test('CallFailures: a conflict is an answer that the caller resolves, however often it comes', (t) => {
  const { clock, settled, calls } = createFailures();
  settled(UPDATE, failureOf('FORBIDDEN', 403, RBAC));
  for (clock.ms = 0; clock.ms < 60_000; clock.ms += 5_000) settled(UPDATE, failureOf('CONFLICT', 409));
  t.deepEqual(calls(), []);
});

test('CallFailures: single failures far apart are no failure that lasts', (t) => {
  for (const [code, status] of [
    ['UNAVAILABLE', 500],
    ['INVALID', 422],
    ['UNAVAILABLE', undefined],
  ] as const) {
    const { clock, settled, calls } = createFailures();
    settled(UPDATE, failureOf(code, status));
    clock.ms = 8 * 60_000;
    settled(UPDATE, failureOf(code, status));
    t.deepEqual(calls(), [], `${code} ${status}`);
  }
});

test('CallFailures: a watch that is only silent had a good answer', (t) => {
  const { settled, calls } = createFailures();
  const WATCH = 'watch nodeeniconfigs';
  settled(WATCH, failureOf('FORBIDDEN', 403, RBAC));
  t.deepEqual(calls(), [WATCH]);
  settled(WATCH, failureOf('TIMEOUT'));
  t.deepEqual(calls(), []);
});

test('CallFailures: a write that is not due any more has failed no longer', (t) => {
  const { failures, settled, calls } = createFailures();
  settled(UPDATE, failureOf('FORBIDDEN', 403, 'admission webhook "w" denied the request'));
  settled('list pods', failureOf('FORBIDDEN', 403, RBAC));
  failures.notDue(UPDATE);
  t.deepEqual(calls(), ['list pods']);
});

test('CallFailures: each missing right is reported once, and its end, whatever ends it', (t) => {
  const { clock, failures, settled } = createFailures();
  const turns: string[] = [];
  failures.subscribe(({ call }, isOver) => void turns.push(`${call} ${isOver ? 'over' : 'missing'}`));
  const ends: readonly (() => void)[] = [
    () => settled(UPDATE, undefined),
    () => settled(UPDATE, failureOf('CONFLICT', 409)),
    () => settled(UPDATE, failureOf('INVALID', 422)),
    () => failures.notDue(UPDATE),
    () => {
      clock.ms += 600_000;
      failures.list();
    },
  ];
  for (const end of ends) {
    for (let calls = 0; calls < 2; calls++) settled(UPDATE, failureOf('FORBIDDEN', 403, RBAC));
    end();
    t.deepEqual(turns.splice(0), [`${UPDATE} missing`, `${UPDATE} over`], `${end}`);
  }
});

test('CallFailures: a list of a kind that is not defined says so', (t) => {
  for (const [resource, step] of [
    ['nodeeniconfigs', /the definition of nodeeniconfigs is missing/],
    ['ciliumnodes', /the definition of ciliumnodes is missing; Cilium's operator creates it when it starts/],
  ] as const) {
    const { failures, settled } = createFailures();
    settled(`list ${resource}`, failureOf('NOT_FOUND', 404, '404 page not found'));
    const last = failures.last(`list ${resource}`);
    t.regex(last === undefined ? 'none' : describeCallFailure(last, 0, 'tke-eni-agent'), step);
  }
});

test('CallFailures: what nobody calls any more is over, a creation later than what is tried again', (t) => {
  const { clock, settled, calls } = createFailures();
  settled('create events', failureOf('FORBIDDEN', 403, RBAC));
  settled('get pods', failureOf('FORBIDDEN', 403, RBAC));
  clock.ms = 60_000;
  t.deepEqual(calls(), ['create events', 'get pods']);
  clock.ms = 14 * 60_000;
  t.deepEqual(calls(), ['create events']);
  clock.ms = 16 * 60_000;
  t.deepEqual(calls(), []);
});
