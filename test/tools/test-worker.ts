/** A stand-in of AVA's worker: it runs what it is told to, says so, and asks for more unless the file is `unclean`. */
type Message = { readonly ava: { readonly options: { readonly file: string } } };

const say = (ava: object): unknown => process.send?.({ ava });

process.on('message', ({ ava: { options } }: Message) => {
  say({ type: options.file === 'fails' ? 'test-failed' : 'test-passed', pid: process.pid });
  if (options.file === 'unclean') process.disconnect?.();
  else say({ type: 'ready-for-options' });
});
say({ type: 'ready-for-options' });
