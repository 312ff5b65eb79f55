// How much of a picture is drawn while it moves: as much as there is time for. Where there is no graphics
// card, software draws it, and a picture that lags behind the hand shows less than one with fewer lines.

/** What of a scene is drawn. */
export interface Detail {
  /** Pixels, of those that the screen has. */
  ratio: number;
  /** Every so many lines one. */
  stride: number;
  /** Lines as wide as a pixel, without arrows. */
  isThin: boolean;
}

export const FULL: Detail = { ratio: 1, stride: 1, isThin: false };
const LESS: Detail[] = [FULL, { ratio: 0.5, stride: 1, isThin: true }, { ratio: 0.5, stride: 4, isThin: true }, { ratio: 0.5, stride: 12, isThin: true }];

const SLOW_MS = 45;
const QUICK_MS = 20;
/** So many quick frames, and the next one may show more; so many slow ones, and it shows less. */
const QUICK_FRAMES = 6;
const SLOW_FRAMES = 2;
/** Pictures with more lines begin with fewer of them: the first frames are not the ones that take a second. */
const MANY_LINES = 8000;

export class Pace {
  private level: number;
  private least = 0;
  private quick = 0;
  private slow = 0;
  private isFirst = true;

  constructor(lines: number) {
    this.level = lines > MANY_LINES ? 2 : 0;
  }

  get detail(): Detail {
    return LESS[this.level];
  }

  /** A frame of the present detail took so long. */
  note(milliseconds: number): void {
    // The first one also uploads the scene and compiles what draws it.
    if (this.isFirst) return void (this.isFirst = false);
    this.quick = milliseconds < QUICK_MS ? this.quick + 1 : 0;
    this.slow = milliseconds > SLOW_MS ? this.slow + 1 : 0;
    if (this.slow >= SLOW_FRAMES && this.level < LESS.length - 1) {
      this.level += 1;
      this.least = this.level; // what was too slow once is not tried again
      this.slow = 0;
    } else if (this.quick >= QUICK_FRAMES && this.level > this.least) {
      this.level -= 1;
      this.quick = 0;
    }
  }
}
