/** An answer that is already rendered as JSON; the server sends it as it is. */
export class RenderedJson {
  readonly body: string | Buffer;

  constructor(body: string | Buffer) {
    this.body = body;
  }

  /** The answer as text. */
  get text(): string {
    return this.body.toString();
  }
}
