/** An answer that is already rendered as JSON; the server sends its text as it is. */
export class RenderedJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
