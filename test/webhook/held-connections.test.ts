import test from 'ava';
import { reviewOf as reviewTextOf } from '../foreign-input/measure-servers.ts';
import { askDuring, type PortAttack } from '../support/port-attack.ts';
import { partOf } from '../support/suite-part.ts';
import { openWebhook, post, reviewOf } from './webhook-scene.ts';

const CONNECTIONS = 1_100;
/** The time limit of an API server that the manifests set. */
const REVIEW_MS = 5_000;
const POD = { metadata: { name: 'db-0' }, spec: { containers: [{ name: 'db', resources: {} }] } };
const REVIEW = reviewTextOf('[]');
const HEAD = 'POST /add-pod-eni-ip-limit HTTP/1.1\r\nhost: a\r\ncontent-type: application/json';

const ATTACKS: readonly (readonly [title: string, kind: PortAttack['kind'], text: string])[] = [
  ['connections that begin no handshake', 'plain', ''],
  ['connections that finish the handshake and send nothing', 'tls', ''],
  ['connections that stay after a good review', 'tls', `${HEAD}\r\ncontent-length: ${REVIEW.length}\r\n\r\n${REVIEW}`],
];

for (const [title, kind, text] of partOf(ATTACKS, ([, kind]) => kind === 'plain')) {
  test.serial(`webhook: answers reviews during 1,100 ${title}, which begin again`, async (t) => {
    t.timeout(300_000);
    const scene = await openWebhook();
    t.teardown(() => scene.close());
    const { answered, asked, begun } = await askDuring(
      { port: scene.port, kind, connections: CONNECTIONS, text },
      async () => {
        const answer = post(scene, JSON.stringify(reviewOf(POD)), { signal: AbortSignal.timeout(REVIEW_MS) });
        return (await answer).status === 200;
      },
    );
    t.log(`${answered} of ${asked} answers; ${begun} connections`);
    t.true(answered >= asked - 1, `${answered} of ${asked}`);
  });
}
