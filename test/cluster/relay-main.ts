/**
 * Takes connections of a listening socket that the parent process hands over, and leads them to port 6443 of the network
 * namespace that it runs in. Ends with its parent.
 */
import { connect, Server, type Socket } from 'node:net';

const API_PORT = 6_443;

function lead(client: Socket): void {
  const server = connect(API_PORT, '127.0.0.1');
  // An end of one side is the end of the other, whatever the reason.
  client.on('error', () => server.destroy());
  server.on('error', () => client.destroy());
  client.on('close', () => server.destroy());
  server.on('close', () => client.destroy());
  client.pipe(server).pipe(client);
}

process.on('message', (_message, handle) => {
  if (handle instanceof Server) handle.on('connection', lead);
});
process.on('disconnect', () => process.exit());
