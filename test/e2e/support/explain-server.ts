/**
 * Serves the agent's call Explain on a socket, and nothing else of an agent: what is broken on the node stays broken.
 * `node test/e2e/support/explain-server.ts SOCKET STATE_DIR`; prints a line once it listens.
 */
import { Server, ServerCredentials, type ServiceDefinition } from '@grpc/grpc-js';
import type { ExplainReplyInit, ExplainRequest } from '../../../agent/api/ops-messages.ts';
import { OPS_SERVICE } from '../../../agent/api/ops-service.ts';
import { openExplainer } from '../../../agent/ops/explainer.ts';

const [socket = '', stateDir = ''] = process.argv.slice(2);
const explainer = openExplainer({ stateDir, hostRoot: '/' }, async () => new Map());
const server = new Server();
const { explain } = OPS_SERVICE;
server.addService({ explain } as unknown as ServiceDefinition, {
  explain: (call: { request: ExplainRequest }, reply: (error: null, message: ExplainReplyInit) => void) => {
    explainer.explain(call.request).then(
      (message) => {
        process.stdout.write(message.declined === undefined ? 'explained\n' : `declined: ${message.declined}\n`);
        reply(null, message);
      },
      (error: unknown) => {
        process.stderr.write(`${error}\n`);
        process.exit(1);
      },
    );
  },
});
server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  process.stdout.write('listening\n');
});
