import test from 'ava';
import { silentLogger } from '../../runtime/log.ts';
import type { PeerAnswer } from '../../scheduler/forward/peer-client.ts';
import { VerbRouter } from '../../scheduler/forward/verb-router.ts';
import { RenderedJson } from '../../scheduler/http/rendered-json.ts';
import { RequestError } from '../../scheduler/http/request-error.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A replica and the leader that it finds, if any, with what that answers. */
function open(words: { leads?: boolean; leader?: string; answer?: (address: string) => PeerAnswer }) {
  const clock = new VirtualClock();
  const state = { leads: false, leader: undefined as string | undefined, ...words };
  const sent: string[] = [];
  const router = new VerbRouter({
    verbs: { bind: () => ({ Error: '' }) },
    isLeading: () => state.leads,
    findLeader: async () => state.leader,
    post: async (address, verb, body, attempt) => {
      sent.push(`${address} ${verb} ${body} ${attempt}`);
      return (state.answer ?? (() => ({ status: 200, text: '{"Error":"of the leader"}' })))(address);
    },
    clock,
    log: silentLogger,
  });
  const ask = async (isForwarded = false, signal = new AbortController().signal): Promise<unknown> => {
    const answer = await router.handlers['bind']?.({ PodName: 'p' }, signal, isForwarded);
    return answer instanceof RenderedJson ? answer.text : answer;
  };
  return { clock, state, sent, ask, router };
}

test('VerbRouter: answers on the leader, and forwards elsewhere', async (t) => {
  const leader = open({ leads: true });
  t.deepEqual(await leader.ask(), { Error: '' });
  t.deepEqual(await leader.ask(true), { Error: '' });
  t.deepEqual(leader.sent, []);
  const standby = open({ leader: '10.0.0.1:61690' });
  t.is(await standby.ask(), '{"Error":"of the leader"}');
  t.deepEqual(standby.sent, ['10.0.0.1:61690 bind {"PodName":"p"} 0']);
});

test('VerbRouter: sends no request to and fro', async (t) => {
  const standby = open({ leader: '10.0.0.1:61690' });
  const error = await t.throwsAsync(standby.ask(true), { instanceOf: RequestError });
  t.is(error?.code, 'STANDBY');
  t.deepEqual(standby.sent, []);
});

test('VerbRouter: waits for a leader, finds another one, or becomes it', async (t) => {
  const standby = open({ answer: (address) => ({ status: address === 'old:1' ? 503 : 200, text: '"new"' }) });
  const waiting = standby.ask();
  await standby.clock.advance(1_000);
  standby.state.leader = 'old:1';
  await standby.clock.advance(1_000);
  standby.state.leader = 'new:1';
  await standby.clock.advance(1_000);
  t.is(await waiting, '"new"');
  standby.state.answer = () => {
    throw new Error('it is gone');
  };
  const next = standby.ask();
  await standby.clock.advance(1_000);
  standby.state.leads = true;
  await standby.clock.advance(1_000);
  t.deepEqual(await next, { Error: '' });
});

test('VerbRouter: refuses after twelve seconds without a leader, and stops with its client', async (t) => {
  const standby = open({});
  const refused = t.throwsAsync(standby.ask(), { instanceOf: RequestError, message: /no leader answered/ });
  await standby.clock.advance(11_000);
  const client = new AbortController();
  const left = t.throwsAsync(standby.ask(false, client.signal));
  await standby.clock.advance(100);
  client.abort(new Error('the client is gone'));
  await left;
  await standby.clock.advance(2_000);
  t.is((await refused)?.code, 'STANDBY');
});

test('VerbRouter: passes on that the leader finds a request malformed', async (t) => {
  const standby = open({ leader: 'a:1', answer: () => ({ status: 400, text: '{"Error":"no uid"}' }) });
  t.like(await t.throwsAsync(standby.ask(), { instanceOf: RequestError }), { code: 'BAD_SHAPE', message: 'no uid' });
});
